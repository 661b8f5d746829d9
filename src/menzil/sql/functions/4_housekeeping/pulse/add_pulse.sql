-- Adds what was counted to the rows of its minutes and channels, and to channel 0, which is all of them. A row that is new has gauges of
-- 0 if its minute was measured: nothing waited in its channel then. Returns how many rows were written.
create or replace function menzil._add_pulse(p_news menzil.pulse_news[]) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_count integer;
begin
  insert into menzil.pulse_minute as p (channel_id, at, sent, completed, failed_tries, dead, deferred, expired, cancelled, ended_ms, try_ms, waiting, in_flight, oldest_s)
    select q.*, g.zero, g.zero, g.zero
      from (select coalesce(n.channel_id, 0) as channel_id, n.at,
           coalesce(sum(n.n) filter (where n.what = 'sent'), 0),
           coalesce(sum(n.n) filter (where n.what = 'completed'), 0),
           coalesce(sum(n.n) filter (where n.what = 'failed_try'), 0),
           coalesce(sum(n.n) filter (where n.what = 'failed'), 0),
           coalesce(sum(n.n) filter (where n.what = 'deferred'), 0),
           coalesce(sum(n.n) filter (where n.what = 'expired'), 0),
           coalesce(sum(n.n) filter (where n.what = 'cancelled'), 0),
           case when bool_or(n.bucket is not null and n.what <> 'try') then array[coalesce(sum(n.n) filter (where n.bucket = 1 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 2 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 3 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 4 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 5 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 6 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 7 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 8 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 9 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 10 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 11 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 12 and n.what <> 'try'), 0)]::integer[] end,
           case when bool_or(n.what = 'try') then array[coalesce(sum(n.n) filter (where n.bucket = 1 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 2 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 3 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 4 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 5 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 6 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 7 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 8 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 9 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 10 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 11 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 12 and n.what = 'try'), 0)]::integer[] end
              from unnest(p_news) n group by grouping sets ((n.channel_id, n.at), (n.at))) q
      left join lateral (select 0 as zero from menzil.pulse_minute g where g.channel_id = 0 and g.at = q.at and g.waiting is not null offset 0) g on true
     order by 1, 2
  on conflict (channel_id, at) do update set
    sent = p.sent + excluded.sent,
    completed = p.completed + excluded.completed,
    failed_tries = p.failed_tries + excluded.failed_tries,
    dead = p.dead + excluded.dead,
    deferred = p.deferred + excluded.deferred,
    expired = p.expired + excluded.expired,
    cancelled = p.cancelled + excluded.cancelled,
    ended_ms = menzil._add_counters(p.ended_ms, excluded.ended_ms), try_ms = menzil._add_counters(p.try_ms, excluded.try_ms);
  get diagnostics v_count = row_count;
  perform menzil._total_pulse(p_news);
  return v_count;
end $$;
