create or replace function menzil._refuse_setting(p_name text) returns void
language plpgsql as $$
declare
  v_nearest text := menzil._nearest_word(p_name, array(select s.name from menzil.settings s));
  -- Settings of ulak that are no settings here, because an endpoint or a worker has them.
  v_elsewhere text := case regexp_replace(p_name, E'^(ulak|menzil)\\.', '')
    when 'http_timeout' then 'timeout_seconds in the config of an endpoint'
    when 'http_connect_timeout' then 'connect_timeout_seconds in the config of an endpoint'
    when 'http_ssl_verify_peer' then 'tls.verify in the config of an endpoint'
    when 'http_ssl_verify_host' then 'tls.verify in the config of an endpoint'
    when 'cloudevents_source' then 'cloudevents.source in the config of an endpoint'
    when 'workers' then 'the option --processes of menzil worker'
    when 'batch_size' then 'the option --batch of menzil worker'
    when 'database' then 'the option --dsn of menzil worker' end;
begin
  perform menzil._refuse_null('The name of a setting') where p_name is null;
  perform menzil._refuse_value(format('There is no setting named %s.', quote_literal(menzil._shown(p_name))),
    concat_ws(' ', coalesce('It is ' || v_elsewhere || '.', 'Did you mean ' || v_nearest || '?'), 'The view menzil.settings lists them all.'));
end $$;
