-- The registry of workers, for people who want to know who is at work; nothing in the queue depends on it.
-- p_instance tells runs of one name apart: two workers of one name have two entries. A worker that begins takes the place of
-- workers of its name that stopped or fell silent; worker_heartbeat removes one that fell silent only just before it began.
drop function if exists menzil.worker_hello(text, text, integer, text, text[], integer);
create or replace function menzil.worker_hello(
  p_worker text, p_host text, p_pid integer, p_version text, p_channels text[] default null, p_concurrency integer default 1,
  p_instance text default ''
) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if p_worker is null or p_host is null or p_pid is null or p_version is null or p_concurrency is null or p_instance is null then
    perform menzil._refuse_null('Name, host, process id, version, concurrency and instance of a worker');
  elsif length(p_worker) not between 1 and 255 then
    perform menzil._refuse_value('The name of a worker has 1 to 255 characters.', 'Use host and process id.');
  elsif length(p_instance) > 100 then
    perform menzil._refuse_value('The instance of a worker has at most 100 characters.', 'Use a random text.');
  end if;
  delete from menzil.worker w where w.ctid = any (array(
    select o.ctid from menzil.worker o
     where o.name = p_worker and o.instance <> p_instance and (o.stopped_at is not null or o.heartbeat_at < v_now - interval '30 s')
       for update skip locked));
  insert into menzil.worker (name, instance, host, pid, version, channels, concurrency, started_at, heartbeat_at)
    values (p_worker, p_instance, left(p_host, 255), p_pid, left(p_version, 100), p_channels, p_concurrency, v_now, v_now)
    on conflict (name, instance) do update set host = excluded.host, pid = excluded.pid, version = excluded.version, channels = excluded.channels,
      concurrency = excluded.concurrency, in_flight = 0, delivered = 0, failed = 0, tally_number = 0, started_at = v_now, heartbeat_at = v_now,
      stopping_at = null, stopped_at = null;
end $$;

-- Says that a worker is alive and what it did so far. False: it is not registered, and should call worker_hello again.
-- p_tally: how long tries took since the last tally, {"number": 7, "try_ms": {"channel": [12 counters]}}. A worker that does not know
-- whether a call was committed repeats it with the same number: a number that is not higher than the last is not counted again.
drop function if exists menzil.worker_heartbeat(text, integer, bigint, bigint, boolean);
drop function if exists menzil.worker_heartbeat(text, integer, bigint, bigint, boolean, text);
create or replace function menzil.worker_heartbeat(
  p_worker text, p_in_flight integer default 0, p_delivered bigint default 0, p_failed bigint default 0, p_stopping boolean default false,
  p_instance text default '', p_tally jsonb default null
) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
  v_since timestamptz;
begin
  perform menzil._keep_tally(p_worker, p_instance, p_tally, v_now) where p_tally is not null;
  update menzil.worker w set heartbeat_at = v_now, in_flight = coalesce(p_in_flight, 0), delivered = coalesce(p_delivered, 0),
      failed = coalesce(p_failed, 0), stopping_at = case when p_stopping then coalesce(w.stopping_at, v_now) end
   where w.name = p_worker and w.instance = p_instance
   returning w.started_at into v_since;
  if v_since is null then
    return false;
  end if;
  -- A worker that crashed and was started again at once: its last sign of life is older than this run, so this run is its
  -- successor. A worker that worked beside this one and fell silent later stays, as lost.
  delete from menzil.worker w where w.ctid = any (array(
    select o.ctid from menzil.worker o
     where o.name = p_worker and o.instance <> p_instance and o.heartbeat_at < least(v_since, v_now - interval '30 s') for update skip locked));
  return true;
end $$;

-- A worker that leaves in good order says so.
drop function if exists menzil.worker_stop(text);
create or replace function menzil.worker_stop(p_worker text, p_instance text default '') returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$
  update menzil.worker w set stopped_at = clock_timestamp(), in_flight = 0
   where w.name = p_worker and w.instance = p_instance and w.stopped_at is null
$$;
