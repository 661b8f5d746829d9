-- Minutes older than 48 hours become hours, hours older than 90 days go, at most p_limit rows of each. A minute that is counted late
-- is added to its hour. Returns how many rows went.
create or replace function menzil._roll_up_pulse(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set timezone = 'UTC' set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_count integer;
  v_total integer;
begin
  with gone as (
    delete from menzil.pulse_minute p where p.ctid = any (array(
      select o.ctid from menzil.pulse_minute o where o.at < date_trunc('hour', v_now - interval '48 h') order by o.at limit p_limit for update skip locked))
    returning p.*
  ), hour as (
    insert into menzil.pulse_hour as h (channel_id, at, waiting, in_flight, oldest_s, sent, completed, failed_tries, dead, deferred, expired, cancelled, ended_ms, try_ms)
      select g.channel_id, date_trunc('hour', g.at), max(g.waiting), max(g.in_flight), max(g.oldest_s), sum(g.sent), sum(g.completed), sum(g.failed_tries),
             sum(g.dead), sum(g.deferred), sum(g.expired), sum(g.cancelled), 
             case when count(g.ended_ms) > 0 then array[coalesce(sum(g.ended_ms[1]), 0), coalesce(sum(g.ended_ms[2]), 0), coalesce(sum(g.ended_ms[3]), 0), coalesce(sum(g.ended_ms[4]), 0), coalesce(sum(g.ended_ms[5]), 0), coalesce(sum(g.ended_ms[6]), 0), coalesce(sum(g.ended_ms[7]), 0), coalesce(sum(g.ended_ms[8]), 0), coalesce(sum(g.ended_ms[9]), 0), coalesce(sum(g.ended_ms[10]), 0), coalesce(sum(g.ended_ms[11]), 0), coalesce(sum(g.ended_ms[12]), 0)]::integer[] end,
             case when count(g.try_ms) > 0 then array[coalesce(sum(g.try_ms[1]), 0), coalesce(sum(g.try_ms[2]), 0), coalesce(sum(g.try_ms[3]), 0), coalesce(sum(g.try_ms[4]), 0), coalesce(sum(g.try_ms[5]), 0), coalesce(sum(g.try_ms[6]), 0), coalesce(sum(g.try_ms[7]), 0), coalesce(sum(g.try_ms[8]), 0), coalesce(sum(g.try_ms[9]), 0), coalesce(sum(g.try_ms[10]), 0), coalesce(sum(g.try_ms[11]), 0), coalesce(sum(g.try_ms[12]), 0)]::integer[] end
        from gone g group by 1, 2 order by 1, 2
    on conflict (channel_id, at) do update set waiting = greatest(h.waiting, excluded.waiting), in_flight = greatest(h.in_flight, excluded.in_flight),
      oldest_s = greatest(h.oldest_s, excluded.oldest_s), sent = h.sent + excluded.sent, completed = h.completed + excluded.completed,
      failed_tries = h.failed_tries + excluded.failed_tries, dead = h.dead + excluded.dead, deferred = h.deferred + excluded.deferred,
      expired = h.expired + excluded.expired, cancelled = h.cancelled + excluded.cancelled,
      ended_ms = menzil._add_counters(h.ended_ms, excluded.ended_ms), try_ms = menzil._add_counters(h.try_ms, excluded.try_ms)
  )
  select count(*) into v_total from gone;
  delete from menzil.pulse_hour h where h.ctid = any (array(
    select o.ctid from menzil.pulse_hour o where o.at < v_now - interval '90 days' order by o.at limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_total + v_count;
end $$;
