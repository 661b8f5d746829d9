-- Opt-in size limit of one channel: the sum of its size changes, exact for everything committed.
-- Long logs are summed up on the way; rows that another transaction is just summing up are left to it.
create or replace function menzil._check_channel_room(p_channel_id integer, p_name text, p_new bigint, p_limit bigint) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_size bigint;
  v_rows bigint;
begin
  select coalesce(sum(s.change), 0), count(*) into v_size, v_rows from menzil.size_change s where s.channel_id = p_channel_id;
  if v_size + p_new > p_limit then
    -- Messages that were in flight when the limit was set end without telling the log. So a refusal counts, and believes the count.
    v_size := least(v_size, menzil._count_channel(p_channel_id));
  end if;
  if v_size + p_new > p_limit then
    raise exception using errcode = '53400',
      message = format('Channel %s is full: %s more on top of %s messages would exceed its max_size of %s.', quote_literal(p_name), p_new, v_size, p_limit),
      hint = 'Try again when consumers have caught up, or raise the limit with menzil.channel_set.';
  end if;
  if v_rows > 100 then
    perform menzil._sum_up_size(p_channel_id);
  end if;
end $$;
