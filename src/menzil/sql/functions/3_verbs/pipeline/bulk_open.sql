-- Opens a send of many rows: gives it a staging table that the caller may fill, and nothing more. Called again, by a driver
-- that died or by a second one, it gives the same table: rows that the commit does not name are not sent. A send that is done
-- stays done, and there is nothing to fill.
create or replace function menzil.bulk_open(p_send_id text, p_what text default null, out state text, out staging text)
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_send menzil.bulk_send;
  v_role name;
begin
  perform menzil._check_send_id(p_send_id);
  insert into menzil.bulk_send (send_id, staging, what) values (p_send_id, '', left(p_what, 1000)) on conflict do nothing;
  select s.* into v_send from menzil.bulk_send s where s.send_id = p_send_id for update;
  if not found then
    raise exception using errcode = '40001', message = 'The send was aborted while it was opened.', hint = 'Try again.';
  elsif v_send.state = 'done' then
    state := 'done';
    return;
  end if;
  if v_send.staging = '' or to_regclass(format('menzil.%I', v_send.staging)) is null then
    v_send.staging := 'bulk_staging_' || nextval('menzil.bulk_staging');
    -- Unlogged: what is lost with the server was not sent, and the commit sees that it is gone.
    -- Text stays text until the commit: the casts are the engine's to make.
    execute format($sql$
      create unlogged table menzil.%I (
        token            text collate "C" not null,        -- of one try of one task
        n                bigint not null,                  -- row number within it, from 0
        endpoint         text,
        payload          text,
        content          bytea,
        priority         integer,
        ordering_key     text,
        idempotency_key  text,
        correlation_id   text,
        scheduled_at     timestamptz,
        expires_at       timestamptz,
        headers          text,
        metadata         text,
        replay_of        bigint
      ) with (autovacuum_enabled = off)$sql$, v_send.staging);
    perform menzil._keep_private(format('menzil.%I', v_send.staging)::regclass);
  end if;
  update menzil.bulk_send s set staging = v_send.staging, touched_at = clock_timestamp() where s.send_id = p_send_id;
  for v_role in   -- the tasks connect as the one who opens, or as a member of a group that may
    select r.rolname from pg_roles r where r.rolname in (session_user, 'menzil_pipeline', 'menzil_admin')
       and not has_table_privilege(r.oid, format('menzil.%I', v_send.staging), 'insert')
  loop
    execute format('grant insert on menzil.%I to %I', v_send.staging, v_role);
  end loop;
  state := 'open';
  staging := v_send.staging;
end $$;
