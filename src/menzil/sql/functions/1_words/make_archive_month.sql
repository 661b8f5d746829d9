-- One partition. Rows of its month that had landed in the default partition move into it. For a month ahead the lock on message is
-- SHARE UPDATE EXCLUSIVE, which no sender, consumer or reader meets; for a month that has begun it is ACCESS EXCLUSIVE. PostgreSQL also takes an ACCESS EXCLUSIVE lock on the default
-- partition until the transaction ends, and no function can avoid that while there is a default partition; without one, a
-- queue whose months nothing made in time would refuse every send. Plain sends, dequeues and completions name the partition
-- of the month and go on. Calls that find a message by its id alone wait for the transaction. Hence: jobs call this in a
-- transaction of their own, under a lock timeout, once a month, and no function that belongs into a user's transaction does.
create or replace function menzil._make_archive_month(p_month timestamptz) returns integer
language plpgsql set timezone = 'UTC' set lock_timeout = '500ms' as $$
declare
  v_name text := 'archive_' || to_char(p_month at time zone 'UTC', 'YYYY_MM');
  v_end timestamptz := (p_month at time zone 'UTC' + interval '1 month') at time zone 'UTC';
begin
  insert into menzil.archive_month (month_start) values (p_month) on conflict do nothing;
  if not found or to_regclass('menzil.' || v_name) is not null then
    return 0;
  end if;
  if p_month <= clock_timestamp() then
    -- Messages of this month lie in the default partition and move. A planner that has listed the partitions before the new one is
    -- attached, and waits for the default partition, would run its plan with a snapshot that sees the messages gone from there: a
    -- settle would not find its message. PostgreSQL also refuses a row (23514) that has chosen the default partition by then. So
    -- readers and senders wait here, before they list or choose. Shorter than a deadlock is waited for: a transaction that has
    -- read the default partition may want to send.
    perform set_config('lock_timeout', '150ms', true);
    lock table only menzil.message in access exclusive mode;
  end if;
  execute format('create table menzil.%I (like menzil.message including defaults including constraints)', v_name);
  execute format('alter table menzil.%I replica identity full', v_name);   -- 0017_published.sql says why
  perform menzil._keep_private(format('menzil.%I', v_name)::regclass);
  execute format('alter table menzil.%I add constraint only_its_month check (created_at >= %L and created_at < %L)', v_name, p_month, v_end);
  execute format('with stray as (delete from menzil.archive_default d where d.created_at >= %L and d.created_at < %L returning d.*)
                  insert into menzil.%I (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, content, payload_hash, ordering_key,
                    idempotency_key, correlation_id, headers, metadata, redrive_of, replay_of)
                  select s.id, s.channel_id, s.priority, s.created_at, s.scheduled_at, s.expires_at, s.payload, s.content, s.payload_hash, s.ordering_key,
                    s.idempotency_key, s.correlation_id, s.headers, s.metadata, s.redrive_of, s.replay_of from stray s', p_month, v_end, v_name);
  execute format('create index on menzil.%I (id) with (fillfactor = 97)', v_name);   -- 0018_denser.sql says why
  execute format('alter table menzil.message attach partition menzil.%I for values from (%L) to (%L)', v_name, p_month, v_end);
  -- The constraint spared the attachment a scan; the partition bound says the same.
  execute format('alter table menzil.%I drop constraint only_its_month', v_name);
  return 1;
end $$;
