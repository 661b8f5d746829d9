-- Numbers for a monitoring system: no payload, no secret, nothing labelled by key or id. Reads only; its cost is bounded at any
-- depth: what waits in lanes is counted by its runs, some 200,000 scheduled messages and messages behind ordering keys are
-- counted one by one, and what lies beyond is told by the register of ids and the newest tally.
create or replace function menzil.metrics()
returns table (metric_name text, metric_value double precision, labels jsonb, metric_type text)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_told record := menzil._told_totals();
  -- How many rows of one channel are counted: fewer where there are many channels.
  v_most integer := greatest(100, least(10000, 200000 / greatest((select count(*) from menzil.channel c where c.dropped_at is null), 1)));
begin
  return query
    with waiting as materialized (
      select w.* from menzil._waiting(v_most, v_now) w
    ), flying as materialized (
      select f.* from menzil._in_flight() f
    ), dead as materialized (
      select d.channel_id, count(*) from (select d.channel_id from menzil.dead_letter d where d.status = 'failed' order by d.channel_id limit 100000) d group by d.channel_id
    ), total as materialized (
      select coalesce(sum(w.count), 0) as counted, coalesce(bool_or(w.capped), false) as capped, coalesce(sum(w.scheduled), 0) as scheduled,
             coalesce(sum(w.keyed), 0) as keyed, min(w.since_at) as since_at, (select coalesce(sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)), 0) from menzil.lease l) as flying
        from waiting w
    )
    select 'queue_depth', (case when t.capped then greatest(t.counted, v_told.sent - v_told.gone - t.flying) else t.counted end)::float8,
           '{"status": "pending"}'::jsonb, 'gauge' from total t
    union all select 'queue_depth', t.flying::float8, '{"status": "processing"}', 'gauge' from total t
    union all select 'in_flight', t.flying::float8, '{}', 'gauge' from total t
    union all select 'scheduled', t.scheduled::float8, '{}', 'gauge' from total t
    union all select 'waiting_for_ordering_key', t.keyed::float8, '{}', 'gauge' from total t
    union all select 'oldest_message_age_seconds', coalesce(extract(epoch from v_now - t.since_at), 0)::float8, '{}', 'gauge' from total t
    union all select 'dlq_depth', (select coalesce(sum(d.count), 0) from dead d)::float8, '{}', 'gauge'
    union all select 'messages_sent_total', v_told.sent::float8, '{}', 'counter'
    union all select 'messages_ended_total', v_told.ended::float8, '{}', 'counter'
    union all select 'snapshot_age_seconds', menzil._snapshot_age(v_now), '{}', 'gauge'
    union all select 'workers_alive', (select count(*) from menzil.get_worker_status() s where s.status in ('alive', 'stopping'))::float8, '{}', 'gauge'
    union all select 'queue_depth_by_endpoint', w.count::float8, jsonb_build_object('endpoint', w.name), 'gauge' from waiting w
    union all select 'queue_depth_by_endpoint_is_lower_bound', w.capped::integer::float8, jsonb_build_object('endpoint', w.name), 'gauge' from waiting w
    union all select 'in_flight_by_endpoint', f.count::float8, jsonb_build_object('endpoint', c.name), 'gauge'
      from flying f join menzil.channel c on c.id = f.channel_id
    union all select 'oldest_message_age_seconds_by_endpoint', extract(epoch from v_now - w.since_at)::float8, jsonb_build_object('endpoint', w.name), 'gauge'
      from waiting w where w.since_at is not null
    union all select 'dlq_depth_by_endpoint', d.count::float8, jsonb_build_object('endpoint', c.name), 'gauge'
      from dead d join menzil.channel c on c.id = d.channel_id where c.dropped_at is null
    union all select 'endpoint_circuit_state', g.circuit::float8, jsonb_build_object('endpoint', w.name), 'gauge'
      from waiting w join menzil._gates_as_told() g on g.channel_id = w.channel_id where w.is_endpoint
    union all select 'job_age_seconds', extract(epoch from v_now - j.last_run_at)::float8, jsonb_build_object('job', j.name), 'gauge'
      from menzil.job j where j.last_run_at is not null;
end $$;
