-- The value of a setting as text.
create or replace function menzil.setting(p_name text) returns text
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_value text;
begin
  select s.value into v_value from menzil.settings s where s.name = p_name;
  perform menzil._refuse_setting(p_name) where not found;
  return v_value;
end $$;
