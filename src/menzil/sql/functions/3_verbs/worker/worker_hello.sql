-- The registry of workers, for people who want to know who is at work; nothing in the queue depends on it.
create or replace function menzil.worker_hello(
  p_worker text, p_host text, p_pid integer, p_version text, p_channels text[] default null, p_concurrency integer default 1
) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if p_worker is null or p_host is null or p_pid is null or p_version is null or p_concurrency is null then
    perform menzil._refuse_null('Name, host, process id, version and concurrency of a worker');
  elsif length(p_worker) not between 1 and 255 then
    perform menzil._refuse_value('The name of a worker has 1 to 255 characters.', 'Use host and process id.');
  end if;
  insert into menzil.worker (name, host, pid, version, channels, concurrency, started_at, heartbeat_at)
    values (p_worker, left(p_host, 255), p_pid, left(p_version, 100), p_channels, p_concurrency, v_now, v_now)
    on conflict (name) do update set host = excluded.host, pid = excluded.pid, version = excluded.version, channels = excluded.channels,
      concurrency = excluded.concurrency, in_flight = 0, delivered = 0, failed = 0, started_at = v_now, heartbeat_at = v_now,
      stopping_at = null, stopped_at = null;
end $$;

-- Says that a worker is alive and what it did so far. False: nobody knows it, it should say hello again.
create or replace function menzil.worker_heartbeat(
  p_worker text, p_in_flight integer default 0, p_delivered bigint default 0, p_failed bigint default 0, p_stopping boolean default false
) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  update menzil.worker w set heartbeat_at = v_now, in_flight = coalesce(p_in_flight, 0), delivered = coalesce(p_delivered, 0),
      failed = coalesce(p_failed, 0), stopping_at = case when p_stopping then coalesce(w.stopping_at, v_now) end
   where w.name = p_worker;
  return found;
end $$;

-- A worker that leaves in good order says so.
create or replace function menzil.worker_stop(p_worker text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$
  update menzil.worker w set stopped_at = clock_timestamp(), in_flight = 0 where w.name = p_worker and w.stopped_at is null
$$;
