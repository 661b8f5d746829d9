create or replace function menzil._refuse_setting(p_name text) returns void
language plpgsql as $$
declare
  v_nearest text := menzil._nearest_word(p_name, array(select s.name from menzil.settings s));
begin
  perform menzil._refuse_null('The name of a setting') where p_name is null;
  perform menzil._refuse_value(format('There is no setting named %s.', quote_literal(menzil._shown(p_name))),
    concat_ws(' ', 'Did you mean ' || v_nearest || '?', 'The view menzil.settings lists them all.'));
end $$;
