-- Who may do what. Group roles: members get the rights, and the roles themselves cannot log in. Functions are SECURITY DEFINER, so that
-- no role but the owner touches a table. Without the right to create roles, those that exist get their rights and the
-- rest is skipped with a notice: a queue with one owner works without any.
do $$
declare
  v_role text;
  v_row record;
  v_taken text[];
  v_functions jsonb := '{
    "menzil_application": ["send", "send_with_options", "send_batch", "send_batch_with_priority", "send_many", "message_create", "enable_fast_mode",
                           "message_cancel", "message_status", "publish", "publish_batch", "validate_event", "inbox_claim", "schema_version", "schema_window", "copy_notice"],
    "menzil_worker":      ["message_dequeue", "message_next", "message_complete", "message_defer", "message_heartbeat", "message_fail", "message_status",
                           "delivery_configs", "worker_hello", "worker_heartbeat", "worker_stop", "worker_wait", "worker_suspects",
                           "job_claim", "job_run", "run_jobs",
                           "bridge_open", "bridge_heartbeat", "bridge_close", "bridge_begin", "bridge_take",
                           "inbox_claim", "schedule_fire_due", "mark_expired_messages", "recover_stale_messages", "maintain_archive_partitions",
                           "archive_completed_messages", "cleanup_old_archive_partitions", "cleanup_dlq", "cleanup_event_log", "cleanup_attempts",
                           "cleanup_used_keys", "cleanup_inbox", "cleanup_workers", "reap_bulk_sends", "maintain",
                           "setting", "schema_version", "schema_window", "copy_notice", "cron_next", "cron_parse"],
    "menzil_monitor":     ["metrics", "health_check", "get_endpoint_health", "get_worker_status", "dlq_summary", "dlq_causes", "dlq_deaths", "pulse_of", "pulse_totals",
                           "channel_window",
                           "message_why", "message_life", "message_family", "channel_state", "turns", "message_id_at", "newest_try", "messages_with_key", "messages_with_correlation", "plan_outcome", "plan_targets", "plan_of", "schedule_slots", "setting", "schema_version", "schema_window", "copy_notice",
                           "cron_next", "cron_parse"],
    "menzil_pipeline":    ["send", "send_with_options", "send_batch", "send_batch_with_priority", "send_many", "message_create", "enable_fast_mode",
                           "publish", "publish_batch", "validate_event", "schema_version", "schema_window", "copy_notice", "bulk_open", "bulk_commit", "bulk_abort",
                           "message_why", "message_life", "message_family", "channel_state", "turns", "message_id_at", "newest_try", "messages_with_key", "messages_with_correlation", "messages_in_window",
                           "channel_window", "message_peek",
                           "feed_position", "feed_lost", "feed_advance", "feed_between",
                           "archive_between", "archive_span", "archive_layout", "archive_months", "archive_fingerprint", "archive_census", "message_hash", "try_hash",
                           "event_log_fingerprint", "drop_exported_month",
                           "pulse_of", "plan_outcome", "plan_targets", "plan_of", "schedule_slots", "pipeline_run_begin", "pipeline_run_end"]}';
  v_views jsonb := '{
    "menzil_admin":    ["queue", "dlq", "archive", "endpoints", "channels", "event_log", "attempts", "settings", "schedules",
                        "event_types", "subscriptions", "bulk_sends", "consumers", "jobs", "pulse", "pipeline_runs", "plans", "bridges", "bridge_positions", "_ends", "_ends_alike", "_channel_names", "_ended", "_ended_plainly", "_ended_with_responses", "_ended_otherwise", "_ended_singly", "_messages", "_message_in_full", "_month_rows"],
    "menzil_worker":   ["channels", "endpoints", "settings", "bridges", "bridge_positions"],
    "menzil_monitor":  ["channels", "endpoints", "settings", "event_log", "event_types", "subscriptions", "consumers", "jobs", "pulse", "pipeline_runs", "plans", "bridges", "bridge_positions"],
    "menzil_pipeline": ["queue", "dlq", "archive", "attempts", "event_log", "event_types", "subscriptions", "channels",
                        "endpoints", "settings", "schedules", "bulk_sends", "consumers", "pulse", "pipeline_runs", "plans", "bridges", "bridge_positions", "_ends", "_ends_alike", "_channel_names", "_ended", "_ended_plainly", "_ended_with_responses", "_ended_otherwise", "_ended_singly", "_messages", "_message_in_full"]}';
begin
  -- New functions are executable by PUBLIC unless taken away.
  for v_row in select p.oid::regprocedure as name from pg_proc p where p.pronamespace = 'menzil'::regnamespace loop
    execute format('revoke all on routine %s from public', v_row.name);
  end loop;
  revoke all on schema menzil from public;

  -- Default privileges of the owner give others rights on everything it makes. What is private is taken back: tables, sequences and
  -- functions that begin with an underscore. No role may read a view without being named.
  v_taken := array(select distinct u.name from pg_class c cross join lateral unnest(menzil._keep_private(c.oid)) u(name)
                    where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p', 'S') and c.relname !~ '^bulk_staging_');
  for v_row in
    select distinct p.oid::regprocedure as name, a.grantee::regrole::text as other from pg_proc p cross join lateral aclexplode(p.proacl) a
     where p.pronamespace = 'menzil'::regnamespace and p.proname like E'\\_%' and a.grantee not in (0, p.proowner)
  loop
    execute format('revoke all on routine %s from %s cascade', v_row.name, v_row.other);
    v_taken := v_taken || v_row.other;
  end loop;
  for v_row in
    select distinct c.oid::regclass as name from pg_class c cross join lateral aclexplode(c.relacl) a
     where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'v' and a.grantee = 0
  loop
    execute format('revoke all on %s from public', v_row.name);
    v_taken := v_taken || 'public'::text;
  end loop;
  if v_taken <> '{}' then
    raise notice 'Rights on what is private in the schema menzil were taken back from: %', (select string_agg(distinct u.name, ', ') from unnest(v_taken) u(name));
  end if;

  -- A role of yours that may call the handshake of an earlier release needs that of this one. Nothing else is given to it.
  for v_row in
    select distinct a.grantee::regrole as name from pg_proc p cross join lateral aclexplode(p.proacl) a
     where p.oid = 'menzil.schema_version()'::regprocedure and a.grantee not in (0, p.proowner)
  loop
    execute format('grant execute on function menzil.schema_window(), menzil.copy_notice() to %s', v_row.name);
  end loop;

  foreach v_role in array array['menzil_admin', 'menzil_application', 'menzil_worker', 'menzil_monitor', 'menzil_pipeline'] loop
    if not exists (select 1 from pg_roles r where r.rolname = v_role) then
      begin
        execute format('create role %I nologin', v_role);
      exception
        when insufficient_privilege then
          raise notice 'Role % is not created: this user may not create roles. The owner can use the queue all the same.', v_role;
          continue;
        when duplicate_object or unique_violation then
          null;   -- roles belong to the whole server: another database was quicker
      end;
    end if;
    execute format('grant usage on schema menzil to %I', v_role);
    for v_row in
      select p.oid::regprocedure as name from pg_proc p
       where p.pronamespace = 'menzil'::regnamespace and p.proname not like E'\\_%'
         and (v_role = 'menzil_admin' or v_functions -> v_role ? p.proname)
    loop
      execute format('grant execute on routine %s to %I', v_row.name, v_role);
    end loop;
    for v_row in select e.name from jsonb_array_elements_text(coalesce(v_views -> v_role, '[]')) e(name) loop
      execute format('grant select on menzil.%I to %I', v_row.name, v_role);
    end loop;
    if v_role = 'menzil_monitor' then   -- counts and times, no payload
      for v_row in select a.attname as name from pg_attribute a where a.attrelid = 'menzil.schedules'::regclass and a.attnum > 0
                      and not a.attisdropped and a.attname not in ('payload', 'headers', 'metadata') loop
        execute format('grant select (%I) on menzil.schedules to %I', v_row.name, v_role);
      end loop;
    end if;
    -- Iceberg's libraries read and write the catalog of the lake without a function of menzil. A dump of the schema menzil alone
    -- has no catalog.
    if v_role in ('menzil_admin', 'menzil_pipeline', 'menzil_monitor') and to_regclass('menzil_lake.iceberg_tables') is not null then
      execute format('grant usage on schema menzil_lake to %I', v_role);
      execute format('grant %s on menzil_lake.iceberg_tables, menzil_lake.iceberg_namespace_properties to %I',
                     case v_role when 'menzil_monitor' then 'select' else 'select, insert, update, delete' end, v_role);
    end if;
    if v_role = 'menzil_admin' then
      execute format('grant update (retry_policy) on menzil.endpoints to %I', v_role);
    end if;
  end loop;
end $$;
