-- An UPDATE of menzil.endpoints: retry_policy and enabled may be written. Every other column has a function of its
-- own, or none: written past it, the gate and the lanes of the channel would not hear of the change.
create or replace function menzil._write_endpoint() returns trigger
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_other text := (select n.key from jsonb_each(to_jsonb(new)) n
                    where n.key not in ('retry_policy', 'enabled') and n.value is distinct from to_jsonb(old) -> n.key order by n.key limit 1);
begin
  if v_other is not null then
    perform menzil._refuse_value(format('The column %s of menzil.endpoints is for reading.', v_other), case
      when v_other = 'config' then 'Call menzil.alter_endpoint(name, config).'
      when v_other = 'paused' then 'Call menzil.channel_pause(name), or channel_resume.'
      when v_other like 'circuit%' or v_other = 'next_probe_at' then 'Call menzil.reset_circuit_breaker(name).'
      when v_other in ('name', 'protocol') then 'Make a new endpoint with menzil.create_endpoint(name, protocol, config).'
      else 'Only retry_policy and enabled can be written.' end);
  end if;
  if new.retry_policy is distinct from old.retry_policy then
    perform menzil.set_retry_policy(old.name, new.retry_policy);
  end if;
  if new.enabled is null then
    perform menzil._refuse_null('A value for enabled');
  end if;
  perform menzil._set_endpoint_enabled(old.name, new.enabled);
  return new;
end $$;
