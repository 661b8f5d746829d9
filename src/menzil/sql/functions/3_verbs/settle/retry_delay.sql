-- Seconds to wait before retry number p_retry_count (the first is 0), by the channel's policy or the settings. The longest delay of the settings
-- does not shorten the base that a policy asks for.
create or replace function menzil._retry_delay(p_policy jsonb, p_settings menzil.setting_value, p_retry_count integer) returns double precision
language plpgsql as $$
declare
  -- Rounded: JSON can hold a number that is too small for a double.
  v_base double precision := coalesce(round((p_policy ->> 'base_delay_seconds')::numeric, 6)::double precision, p_settings.retry_base_delay);
  v_max double precision := coalesce(round((p_policy ->> 'max_delay_seconds')::numeric, 6)::double precision,
                                     greatest(p_settings.retry_max_delay, case when p_policy ? 'base_delay_seconds' then v_base end));
  v_delay double precision;
begin
  v_delay := case coalesce(p_policy ->> 'backoff', 'exponential')
    when 'fixed' then v_base
    when 'linear' then v_base + p_retry_count * coalesce(round((p_policy ->> 'increment_seconds')::numeric, 6)::double precision, p_settings.retry_increment)
    else v_base * power(2, least(p_retry_count, 40))
  end;
  v_delay := least(v_delay, v_max);
  -- Jitter shortens by up to its share, so that what failed together does not come back together.
  return v_delay * (1 - random() * case p_policy -> 'jitter' when 'true' then 0.5 when 'false' then 0 else coalesce(round((p_policy ->> 'jitter')::numeric, 6)::double precision, 0) end);
end $$;
