-- Changes a setting of the whole queue, from the next transaction on. The value 'default' sets it back.
create or replace function menzil.set_setting(p_name text, p_value text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_setting record;
  v_value text;
begin
  perform menzil._refuse_null('The value of a setting') where p_value is null;
  perform from menzil.setting_value v for update;   -- so that the old value in the event is the one we replace
  select s.value, s.default_value, s.minimum, s.maximum, s.unit into v_setting from menzil.settings s where s.name = p_name;
  perform menzil._refuse_setting(p_name) where not found;
  if lower(btrim(p_value) collate "C") = 'default' then
    v_value := v_setting.default_value;
  else
    v_value := menzil._setting_value(p_name, v_setting.unit, v_setting.minimum, v_setting.maximum, p_value);
  end if;
  if v_value = v_setting.value then
    return;
  end if;
  if (select to_jsonb(v) ? p_name from menzil.setting_value v) then
    execute format('update menzil.setting_value set %I = %L', p_name, v_value);
  else
    insert into menzil.setting_word as w (name, value) values (p_name, v_value) on conflict (name) do update set value = excluded.value;
  end if;
  if p_name = 'archive_completed' then   -- what completed before it was turned off stays
    update menzil.setting_value set archive_off_at = clock_timestamp(), archive_off_xid = pg_snapshot_xmin(pg_current_snapshot());
  end if;
  perform menzil._event('setting.changed', 'setting', p_name, to_jsonb(v_setting.value), to_jsonb(v_value));
end $$;
