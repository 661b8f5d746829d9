-- True, or a refusal that names the key that is wrong. Keys that are not given are left to the settings.
create or replace function menzil.validate_retry_policy(p_policy jsonb) returns boolean
language plpgsql immutable security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_known constant text[] := '{max_retries,backoff,base_delay_seconds,max_delay_seconds,increment_seconds,jitter}';
  v_key text;
  v_value jsonb;
  v_number numeric;
  v_wanted text;
begin
  if p_policy is null then
    return true;
  elsif jsonb_typeof(p_policy) <> 'object' then
    perform menzil._refuse_value('A retry policy must be a JSON object.', 'For instance {"max_retries": 20, "backoff": "linear"}, or NULL for the settings.');
  end if;
  for v_key, v_value in select e.key, e.value from jsonb_each(p_policy) e loop
    v_number := case jsonb_typeof(v_value) when 'number' then (v_value #>> '{}')::numeric end;
    v_wanted := case
      when v_key <> all (v_known) then null
      when v_key = 'max_retries' and (v_number between 0 and 1000 and v_value::text ~ '^[0-9]+$') is not true then 'a whole number from 0 to 1000'
      when v_key = 'backoff' and v_value not in ('"exponential"', '"linear"', '"fixed"') then 'exponential, linear or fixed'
      when v_key like E'%\\_seconds' and (v_number between 0 and 86400) is not true then 'a number from 0 to 86400'
      when v_key = 'jitter' and (jsonb_typeof(v_value) = 'boolean' or v_number between 0 and 1) is not true then 'true, false or a number from 0 to 1'
    end;
    if v_key <> all (v_known) then
      perform menzil._refuse_value(format('%s is not a key of a retry policy.', quote_literal(menzil._shown(v_key))),
        concat_ws(' ', 'Did you mean ' || menzil._nearest_word(v_key, v_known) || '?', format('Known keys are %s.', array_to_string(v_known, ', '))));
    elsif v_wanted is not null then
      perform menzil._refuse_value(format('In the retry policy %s must be %s.', v_key, v_wanted), 'Leave a key out to use the setting.');
    end if;
  end loop;
  if (p_policy ->> 'base_delay_seconds')::numeric > (p_policy ->> 'max_delay_seconds')::numeric then
    perform menzil._refuse_value('In the retry policy base_delay_seconds may not be longer than max_delay_seconds.', 'Raise max_delay_seconds.');
  end if;
  return true;
end $$;
