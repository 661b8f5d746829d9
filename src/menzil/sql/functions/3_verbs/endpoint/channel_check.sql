-- Keeps menzil.channel sound however it is written, by our functions or by an administrator's UPDATE of
-- menzil.endpoints: retry policies and configs are valid, and no secret is ever in a config.
create or replace function menzil._channel_check() returns trigger
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_old menzil.channel;
begin
  if tg_op = 'UPDATE' then
    v_old := old;
    new.updated_at := clock_timestamp();
  end if;
  if new.retry_policy is distinct from v_old.retry_policy then
    perform menzil.validate_retry_policy(new.retry_policy);
    perform menzil._event('retry_policy.changed', case when new.protocol is null then 'channel' else 'endpoint' end, new.name,
      v_old.retry_policy, new.retry_policy);
  end if;
  if v_old.protocol is not null and new.protocol is distinct from v_old.protocol then
    perform menzil._refuse_value('An endpoint keeps its protocol.', 'Make a new endpoint.');
  end if;
  if new.config is distinct from v_old.config then
    perform menzil.validate_endpoint_config(new.protocol, new.config);
    if exists (select 1 from menzil._secret_paths(new.protocol, new.config) s where not menzil._is_secret_mark(new.config #> s.path))
       or exists (select 1 from menzil._credential_urls(new.protocol, new.config) u where not u.hidden) then
      perform menzil._refuse_value('A secret may not be stored in the config itself.', 'Use menzil.alter_endpoint(name, config), which puts secrets apart.');
    end if;
  end if;
  if new.dropped_at is not null then
    delete from menzil.endpoint_secret e where e.channel_id = new.id;
    -- Skip rows that another transaction is ending: a dequeue may drop a drained channel, and a dequeue never waits for a lock.
    delete from menzil.subscription s where s.ctid = any (array(
      select u.ctid from menzil.subscription u where u.channel_id = new.id for update skip locked));
  end if;
  return new;
end $$;

-- Asks first: replacing a trigger locks the table.
do $do$
begin
  if not exists (select from pg_trigger t where t.tgrelid = 'menzil.channel'::regclass and t.tgname = 'channel_check') then
    create trigger channel_check before insert or update of protocol, config, retry_policy, dropped_at on menzil.channel
      for each row execute function menzil._channel_check();
  end if;
end $do$;
