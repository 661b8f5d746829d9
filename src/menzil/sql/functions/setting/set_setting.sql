-- Changes a setting for everybody, from the next transaction on. The value 'default' sets it back.
create or replace function menzil.set_setting(p_name text, p_value text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_setting record;
  v_value text;
begin
  if p_value is null then
    perform menzil._refuse_null('The value of a setting');
  end if;
  perform from menzil.setting_value v for update;   -- so that the old value in the event is the one we replace
  select s.value, s.default_value, s.minimum, s.maximum, s.unit into v_setting from menzil.settings s where s.name = p_name;
  if not found then
    perform menzil._refuse_setting(p_name);
  end if;
  if lower(btrim(p_value)) = 'default' then
    v_value := v_setting.default_value;
  else
    v_value := menzil._setting_value(p_name, v_setting.unit, v_setting.minimum, v_setting.maximum, p_value);
  end if;
  if v_value = v_setting.value then
    return;
  end if;
  execute format('update menzil.setting_value set %I = %L', p_name, v_value);
  perform menzil._event('setting.changed', 'setting', p_name, to_jsonb(v_setting.value), to_jsonb(v_value));
end $$;
