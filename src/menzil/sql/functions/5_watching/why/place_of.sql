-- Where a live message that is not in flight waits:
--   scheduled  until due_at                   key    behind its ordering key
--   run, line  in its lane                    aside  a dequeue set it aside until due_at
--   log        somewhere behind the first 10,000 lines of the log
--   null       nowhere, which menzil.rebuild repairs
-- A message that is due on the schedule stands in its lane with the next dequeue: it counts as a line.
create or replace function menzil._place_of(
  p_message menzil.sent, p_place_at timestamptz, p_due_at timestamptz, p_in_line boolean, p_log_full boolean, p_now timestamptz, out place text, out due_at timestamptz
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_holds boolean;
begin
  select s.due_at, s.holds_key into due_at, v_holds from menzil.scheduled s where s.due_at = coalesce(p_due_at, p_message.scheduled_at) and s.id = p_message.id;
  if found then
    place := case when due_at > p_now then 'scheduled' when p_message.ordering_key is not null and not v_holds then 'key' else 'line' end;
    return;
  end if;
  if exists (select 1 from menzil.key_queue k
              where k.channel_id = p_message.channel_id and k.ordering_key = p_message.ordering_key and k.waits = 1 and k.id = p_message.id) then
    place := 'key';
  -- Nearly always the last run that begins before it; runs of one microsecond may overlap. Of the first run some may be leased already.
  elsif exists (
      select 1 from (select r.due_at, r.first_id, r.n, r.ids from menzil.run r
                      where r.channel_id = p_message.channel_id and r.rank = p_message.rank and (r.due_at, r.first_id) <= (p_place_at, p_message.id)
                      order by r.due_at desc, r.first_id desc limit 16) r
        left join lateral (select l.head_due, l.head_id, l.gone from menzil.lane l
                            where l.channel_id = p_message.channel_id and l.rank = p_message.rank order by l.v desc limit 1) l on true
       where case when r.ids is not null then array_position(r.ids, p_message.id)
                  when p_message.id between r.first_id and r.first_id + r.n - 1 then p_message.id - r.first_id + 1 end
             > case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end) then
    place := 'run';
  elsif p_in_line then
    place := 'line';
  else
    select s.due_at into due_at
      from (select s.id, s.due_at from menzil.scheduled s
             where s.channel_id = p_message.channel_id and s.due_at <= p_now + interval '6 min' order by s.due_at limit 20000) s where s.id = p_message.id;
    place := case when due_at > p_now then 'aside' when found then 'line' when p_log_full then 'log' end;
  end if;
end $$;
