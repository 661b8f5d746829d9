-- What the keys of the config of a Kafka endpoint mean together.
create or replace function menzil._check_kafka_config(p_config jsonb) returns void
language plpgsql immutable as $$
declare
  v_wrong record;
begin
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, null as hint from (values
        ('servers', true),
        ('topic', true)
      ) n(path, needed) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select f.path, f.what, f.hint from menzil._common_faults('kafka', p_config) f
    union all
    select f.path, f.what, f.hint from menzil._auth_faults('kafka', p_config) f
    union all
    select 'partition', 'does not go with key', 'A key chooses the partition.' where p_config ? 'partition' and p_config ? 'key'
    union all
    select 'key', 'must be ordering_key with cloudevents', 'The attribute partitionkey is the ordering key, and the record key must equal it.'
     where p_config ? 'cloudevents' and p_config ? 'key' and p_config ->> 'key' <> 'ordering_key'
    union all
    select 'allow_overrides.topic', 'must list topics of 1 to 249 letters, digits, dots, underscores and hyphens', null
      from jsonb_array_elements_text(p_config #> '{allow_overrides,topic}') t(topic) where not menzil._is_topic(t.topic)
    ) r limit 1;
  if found then
    perform menzil._refuse_config(v_wrong.path, v_wrong.what, v_wrong.hint);
  end if;
  perform menzil._check_kafka_options(p_config -> 'options');
end $$;

-- Properties of librdkafka that a config may set. Others name files, libraries, commands or addresses, or are keys of the config.
create or replace function menzil._check_kafka_options(p_options jsonb) returns void
language plpgsql immutable as $$
declare
  v_known text[] := '{batch.size,broker.address.family,client.rack,compression.level,metadata.max.age.ms,socket.keepalive.enable}';
  v_key text;
  v_value jsonb;
  v_text text;
  v_wanted text;
begin
  for v_key, v_value in select o.key, o.value from jsonb_each(p_options) o loop
    v_text := v_value #>> '{}';
    if v_key <> all (v_known) then
      perform menzil._refuse_value(format('%s is not an option of a kafka endpoint.', quote_literal(menzil._shown('options.' || v_key))),
        concat_ws(' ', 'Did you mean ' || menzil._nearest_word(v_key, v_known) || '?', format('Known options are %s.', array_to_string(v_known, ', '))));
    end if;
    v_wanted := case
      when v_key = 'batch.size' and (jsonb_typeof(v_value) <> 'number' or v_text !~ '^[0-9]{1,10}$' or v_text::bigint not between 1 and 2147483647) then 'a whole number from 1 to 2147483647'
      when v_key = 'metadata.max.age.ms' and (jsonb_typeof(v_value) <> 'number' or v_text !~ '^[0-9]{1,8}$' or v_text::bigint not between 1 and 86400000) then 'a whole number from 1 to 86400000'
      when v_key = 'compression.level' and (jsonb_typeof(v_value) <> 'number' or v_text !~ '^-?[0-9]{1,2}$' or v_text::integer not between -1 and 12) then 'a whole number from -1 to 12'
      when v_key = 'broker.address.family' and (jsonb_typeof(v_value) <> 'string' or v_text <> all ('{any,v4,v6}')) then 'one of any, v4, v6'
      when v_key = 'client.rack' and (jsonb_typeof(v_value) <> 'string' or length(v_text) not between 1 and 249 or v_text ~ '[[:cntrl:]]') then 'a text of 1 to 249 characters without control characters'
      when v_key = 'socket.keepalive.enable' and jsonb_typeof(v_value) <> 'boolean' then 'true or false' end;
    if v_wanted is not null then
      perform menzil._refuse_config('options.' || v_key, 'must be ' || v_wanted);
    end if;
  end loop;
end $$;
