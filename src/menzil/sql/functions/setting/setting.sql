-- The value of a setting as text.
create or replace function menzil.setting(p_name text) returns text
language plpgsql stable security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_value text;
begin
  select s.value into v_value from menzil.settings s where s.name = p_name;
  if not found then
    perform menzil._refuse_setting(p_name);
  end if;
  return v_value;
end $$;

create or replace function menzil._refuse_setting(p_name text) returns void
language plpgsql as $$
declare
  v_nearest text := menzil._nearest_word(p_name, array(select s.name from menzil.settings s));
begin
  if p_name is null then
    perform menzil._refuse_null('The name of a setting');
  end if;
  perform menzil._refuse_value(format('There is no setting named %s.', quote_literal(menzil._shown(p_name))),
    concat_ws(' ', 'Did you mean ' || v_nearest || '?', 'The view menzil.settings lists them all.'));
end $$;
