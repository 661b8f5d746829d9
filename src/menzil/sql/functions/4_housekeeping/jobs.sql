-- Housekeeping is data: one row per job. A worker calls menzil.run_jobs, which claims due jobs with SKIP LOCKED and gives each
-- a transaction of its own under a short lock timeout. A job that fails says so in last_error and is tried again.

insert into menzil.job as j (name, call, every, light) values
  ('recovery', 'menzil.recover_stale_messages(1000)', '1 s', true),
  ('expiry', 'menzil.mark_expired_messages(1000)', '1 s', true),
  ('schedules', 'menzil.schedule_fire_due(100)', '1 s', true),
  ('releases', 'menzil._finish_releases()', '5 s', true),
  ('plans', 'menzil._step_plans(1000)', '1 s', true),
  ('old_plans', 'menzil._cleanup_plans(100)', '10 min', true),
  ('partitions', 'menzil.maintain_archive_partitions(3)', '10 min', false),
  ('hot_functions', 'menzil._renew_hot_functions()', '1 min', false),
  ('leftovers', 'menzil.archive_completed_messages(3600, 10000)', '10 min', false),
  ('retention', 'menzil.cleanup_old_archive_partitions()', '1 h', false),
  ('ends', 'menzil._cleanup_ends(10000)', '1 min', false),
  ('completed', 'menzil._cleanup_completed(10000)', '10 s', false),
  ('attempts', 'menzil.cleanup_attempts(10000)', '1 min', false),
  ('dead_letters', 'menzil.cleanup_dlq(10000)', '1 min', false),
  ('causes', 'menzil._explain_letters(1000)', '1 min', false),
  ('event_log', 'menzil.cleanup_event_log(10000)', '1 min', false),
  ('pipeline_runs', 'menzil._cleanup_pipeline_runs(1000)', '1 h', false),
  ('pulse', 'menzil._pulse(100000)', '10 s', true),
  ('pulse_hours', 'menzil._roll_up_pulse(10000)', '10 min', false),
  ('lookups', 'menzil._write_lookups(50000)', '1 s', true),
  ('old_lookups', 'menzil._cleanup_lookups(100)', '1 min', false),
  ('keys', 'menzil.cleanup_used_keys(10000)', '1 min', false),
  ('inbox', 'menzil.cleanup_inbox(10000)', '1 min', false),
  ('workers', 'menzil.cleanup_workers(1000)', '10 min', false),
  ('bulk_sends', 'menzil.reap_bulk_sends(''1 day'', 1000)', '10 min', false),
  ('cluster', 'menzil._notice_cluster()', '10 s', true),
  ('sizes', 'menzil._recount_sizes(100)', '10 s', false)
on conflict (name) do update set call = excluded.call, every = excluded.every, light = excluded.light;

-- Functions that have another month in their text than the current one are made anew.
create or replace function menzil._renew_hot_functions() returns integer
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_name text;
  v_count integer := 0;
begin
  for v_name in select h.name from menzil.hot_function h where h.month is distinct from menzil._month_of(v_now) for update skip locked loop
    perform menzil._renew_hot(v_name, v_now);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;

-- What consumers wait for, once, in the caller's transaction: leases that ran out, expiry, schedules, the log. It locks no relation,
-- so it makes no months and applies no retention: where no worker runs, call menzil.run_jobs() for that.
create or replace function menzil.maintain() returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  perform menzil._notice_cluster();
  perform menzil._recover(v_now, '-infinity', 1000);
  perform menzil._expire(v_now, 1000);
  perform menzil._promote(v_now, '-infinity', 1000);
  perform menzil._fold(v_now, true, 2000);
  perform menzil._chores(v_now);
  perform menzil.cleanup_used_keys();
end $$;
