-- Every worker that is known: alive, stopping, stopped, or lost (not heard of for 30 seconds).
create or replace function menzil.get_worker_status()
returns table (
  worker text, host text, pid integer, version text, channels text[], concurrency integer, in_flight integer, delivered bigint, failed bigint,
  started_at timestamptz, last_heartbeat_at timestamptz, status text
)
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
  select w.name, w.host, w.pid, w.version, w.channels, w.concurrency, w.in_flight, w.delivered, w.failed, w.started_at, w.heartbeat_at,
         case when w.stopped_at is not null then 'stopped'
              when w.heartbeat_at < clock_timestamp() - interval '30 s' then 'lost'
              when w.stopping_at is not null then 'stopping'
              else 'alive' end
    from menzil.worker w
   order by w.stopped_at is not null, w.name
$$;
