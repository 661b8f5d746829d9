-- What the keys of the config of an endpoint of AMQP mean together.
create or replace function menzil._check_amqp_config(p_config jsonb) returns void
language plpgsql immutable as $$
declare
  v_wrong record;
begin
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, n.hint from (values
        ('host', true, null),
        ('exchange', true, 'The default exchange is "": it takes a message to the queue that routing_key names.'),
        ('routing_key', true, 'With the default exchange it is the name of the queue. An exchange that looks at no routing key takes "".')
      ) n(path, needed, hint) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select f.path, f.what, f.hint from menzil._common_faults('amqp', p_config) f
    union all
    select f.path, f.what, f.hint from menzil._auth_faults('amqp', p_config) f
    union all
    select k.key, 'may have at most 255 bytes in UTF-8', null
      from unnest('{exchange,routing_key,vhost}'::text[]) k(key) where octet_length(convert_to(p_config ->> k.key, 'UTF8')) > 255
    union all
    select 'allow_overrides.routing_key', 'must list texts of at most 255 bytes in UTF-8', null
      from jsonb_array_elements_text(p_config #> '{allow_overrides,routing_key}') k(key) where octet_length(convert_to(k.key, 'UTF8')) > 255
    union all
    select 'routing_key', 'may not be empty with the default exchange', 'It is the name of the queue.' where p_config ->> 'exchange' = '' and p_config ->> 'routing_key' = ''
    union all
    select 'unroutable', 'goes with mandatory true', 'Without mandatory the server drops an unroutable message and tells nothing.' where p_config ? 'unroutable' and p_config -> 'mandatory' = 'false'
    ) r limit 1;
  if found then
    perform menzil._refuse_config(v_wrong.path, v_wrong.what, v_wrong.hint);
  end if;
end $$;
