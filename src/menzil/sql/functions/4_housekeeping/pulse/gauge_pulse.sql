-- Measures what waits and what is in flight, once in a minute. Returns how many rows were written.
create or replace function menzil._gauge_pulse(p_now timestamptz) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_at timestamptz := date_bin('1 min', p_now, '2000-01-01 00:00:00+00');
  v_most integer := greatest(100, least(10000, 200000 / greatest((select count(*) from menzil.channel c where c.dropped_at is null), 1)));
  v_count integer;
begin
  insert into menzil.pulse_minute as p (channel_id, at, waiting, in_flight, oldest_s)
    select coalesce(q.channel_id, 0), v_at, coalesce(sum(q.waiting), 0), coalesce(sum(q.in_flight), 0), coalesce(max(q.oldest_s), 0)
      from (select w.channel_id, w.count as waiting, 0 as in_flight, date_part('epoch', p_now - w.since_at) as oldest_s
              from menzil._waiting(v_most, p_now) w where w.count > 0
            union all select f.channel_id, 0, f.count, 0 from menzil._in_flight() f) q
     group by grouping sets ((q.channel_id), ()) order by 1
  on conflict (channel_id, at) do update set waiting = excluded.waiting, in_flight = excluded.in_flight, oldest_s = excluded.oldest_s;
  get diagnostics v_count = row_count;
  -- Channels that had a row of this minute already, and neither wait nor work.
  update menzil.pulse_minute p set waiting = 0, in_flight = 0, oldest_s = 0 where p.at = v_at and p.waiting is null;
  return v_count;
end $$;
