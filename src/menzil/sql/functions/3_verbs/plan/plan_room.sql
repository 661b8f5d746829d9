-- How many of p_wanted new messages there is room for: in one channel, or with NULL in the queue. A plan leaves a tenth of either to
-- senders: a limit that a plan has used up would refuse theirs. The whole number is tried first, then a half, a quarter, and so on.
create or replace function menzil._plan_room(p_channel_id integer, p_wanted integer, out room integer, out sentence text)
language plpgsql as $$
declare
  v_channel menzil.channel;
  v_limit bigint;
begin
  room := p_wanted;
  if room < 1 then
    return;
  elsif p_channel_id is null then
    v_limit := (select ceil(s.max_queue_size * 0.9) from menzil.setting_value s);
  else
    select c.* into v_channel from menzil.channel c where c.id = p_channel_id;
    v_limit := ceil(v_channel.max_size * 0.9);
    if v_limit is null then
      return;
    end if;
  end if;
  while room > 0 loop
    begin
      if p_channel_id is null then
        perform menzil._check_room(room, v_limit);
      else
        perform menzil._check_channel_room(p_channel_id, v_channel.name, room, v_limit);
      end if;
      return;
    exception when sqlstate '53400' then
      room := room / 2;
    end;
  end loop;
  sentence := case when p_channel_id is null then format('The queue is full: a plan uses up to nine tenths of its max_queue_size, %s messages.', v_limit)
                   else format('Channel %s is full: a plan uses up to nine tenths of its max_size, %s messages.', quote_literal(v_channel.name), v_limit) end;
end $$;
