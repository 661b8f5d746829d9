-- True, or a refusal that names the key that is wrong.
create or replace function menzil.validate_endpoint_config(p_protocol text, p_config jsonb) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if p_protocol is null then
    perform menzil._refuse_null('A protocol');
  elsif p_config is null then
    perform menzil._refuse_null('An endpoint config');
  elsif p_protocol <> all (menzil.known_protocols()) then
    perform menzil._refuse_value(format('There is no protocol named %s.', quote_literal(menzil._shown(p_protocol))),
      format('Known protocols are %s.', array_to_string(menzil.known_protocols(), ', ')));
  elsif jsonb_typeof(p_config) <> 'object' then
    perform menzil._refuse_value('An endpoint config must be a JSON object.', 'For instance {"url": "https://example.com/hook"}.');
  elsif octet_length(p_config::text) > 1048576 then
    perform menzil._refuse_value('An endpoint config has at most 1048576 bytes.', 'Put what varies into the messages.');
  end if;
  perform menzil._check_config(p_protocol, p_config);
  if p_protocol = 'http' then
    perform menzil._check_http_config(p_config);
  elsif p_protocol = 'amqp' then
    perform menzil._check_amqp_config(p_config);
  elsif p_protocol in ('kafka', 'nats', 'redis') then
    perform menzil._check_broker_config(p_protocol, p_config);
  elsif p_protocol = 'mqtt' then
    perform menzil._check_mqtt_config(p_config);
  end if;
  return true;
end $$;
