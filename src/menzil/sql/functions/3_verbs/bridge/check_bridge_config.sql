-- Sources that a bridge can read.
create or replace function menzil._bridge_protocols() returns text[]
language sql immutable parallel safe
return array['amqp', 'kafka', 'mqtt', 'nats', 'redis'];

-- Refuses a config that no bridge could use. The checks are those of endpoints; only the word in their sentences is another one.
create or replace function menzil._check_bridge_config(p_protocol text, p_config jsonb) returns void
language plpgsql stable as $$
declare
  v_hint text;
  v_wrong record;
begin
  if p_protocol is null then
    perform menzil._refuse_null('The protocol of a bridge');
  elsif p_config is null then
    perform menzil._refuse_null('The config of a bridge');
  elsif p_protocol <> all (menzil._bridge_protocols()) then
    perform menzil._refuse_value(format('A bridge cannot read from %s.', quote_literal(menzil._shown(p_protocol))),
      format('It reads from %s.', array_to_string(menzil._bridge_protocols(), ', ')));
  elsif jsonb_typeof(p_config) <> 'object' then
    perform menzil._refuse_value('The config of a bridge must be a JSON object.', 'For instance {"host": "cache.example.com", "stream": "orders", "start": "earliest"}.');
  elsif octet_length(p_config::text) > 1048576 then
    perform menzil._refuse_value('The config of a bridge has at most 1048576 bytes.', 'Certificates and keys are all that is long in one.');
  end if;
  begin   -- only reads
    perform menzil._check_config(p_protocol || ' bridge', p_config);
  exception when invalid_parameter_value then
    get stacked diagnostics v_hint = pg_exception_hint;
    raise exception using errcode = '22023',
      message = replace(replace(replace(sqlerrm, 'In the endpoint config', 'In the bridge config'), 'bridge endpoint.', 'bridge.'), 'an redis', 'a redis'),
      hint = replace(v_hint, 'if the endpoint can', 'if the bridge can');
  end;
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, n.hint from (values
        ('servers', p_protocol in ('nats', 'kafka'), null::text),
        ('host', p_protocol in ('amqp', 'mqtt', 'redis'), null),
        ('queue', p_protocol = 'amqp', 'The bridge makes no queue: name one that is there.'),
        ('stream', p_protocol in ('nats', 'redis'), null),
        ('topic', p_protocol in ('kafka', 'mqtt'), null),
        ('start', p_protocol in ('kafka', 'nats', 'redis'), 'Say where a new bridge begins: earliest for all that the source still has, latest for what comes from now on.')
      ) n(path, needed, hint) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select 'start', 'must be earliest or latest' || case when p_protocol = 'kafka' then '' else ', or a position' end,
           case p_protocol when 'redis' then 'A position is the id of an entry, such as 1526919030474-0.'
                           when 'nats' then 'A position is the sequence of a message in the stream.'
                           else 'menzil.bridge_seek(name, partition, position) sets the offset of one partition.' end
     where p_config ->> 'start' !~ case p_protocol when 'redis' then '^(earliest|latest|[0-9]{1,20}-[0-9]{1,20})$' when 'nats' then '^(earliest|latest|[0-9]{1,19})$'
                                                   else '^(earliest|latest)$' end
    union all
    select f.path, f.what, f.hint from menzil._common_faults(p_protocol || ' bridge', p_config) f
    union all
    select f.path, f.what, f.hint from menzil._auth_faults(p_protocol, p_config) f
    union all
    select 'topic', 'may have letters, digits, dots, _ and - only', null where p_protocol = 'kafka' and p_config ->> 'topic' !~ '^[A-Za-z0-9._-]+$'
    union all
    select 'topic', 'is not a filter of topics', 'A + stands for one level, a # at the end for all that follow: shop/+/orders, shop/#.'
     where p_protocol = 'mqtt' and p_config ->> 'topic' !~ '^([^+#/]*|[+])(/([^+#/]*|[+]))*(/#)?$' and p_config ->> 'topic' <> '#'
    union all
    select 'session_seconds', 'goes with version 5', 'A server of MQTT 3.1.1 keeps sessions as long as it likes.' where p_config ? 'session_seconds' and p_config ->> 'version' = '3.1.1'
    union all
    select 'stream', 'is not the name of a stream of NATS', 'Names have no dots, spaces, * and >.' where p_protocol = 'nats' and p_config ->> 'stream' ~ E'[\\s.*>/\\\\]'
    union all
    select 'subject', 'is not a subject', 'Words joined by dots; * stands for one word, and > for the rest.'
     where p_config ->> 'subject' !~ E'^([^\\s.>*]+|[*])(\\.([^\\s.>*]+|[*]))*(\\.>)?$' and p_config ->> 'subject' <> '>'
    ) r limit 1;
  if found then
    raise exception using errcode = '22023', message = format('In the bridge config %s %s.', v_wrong.path, v_wrong.what),
      hint = coalesce(v_wrong.hint, case when v_wrong.what like 'is needed%' then 'Add it to the config.' end, 'Change the value, or leave the key out if the bridge can do without it.');
  end if;
end $$;
