-- What the keys of the config of an mqtt endpoint mean together.
create or replace function menzil._check_mqtt_config(p_config jsonb) returns void
language plpgsql immutable as $$
declare
  v_topic text := p_config ->> 'topic';
  v_old boolean := p_config ->> 'version' = '3.1.1';
  v_wrong record;
begin
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, null as hint from (values
        ('host', true),
        ('topic', true)
      ) n(path, needed) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select f.path, f.what, f.hint from menzil._common_faults('mqtt', p_config) f
    union all
    select f.path, f.what, f.hint from menzil._auth_faults('mqtt', p_config) f
    union all
    select w.path, w.what, w.hint from (values
        ('topic', v_topic ~ '[+#]', 'may not contain + or #', 'These are for subscribers; a message goes to one topic.'),
        ('topic', v_topic like '$%', 'may not begin with $', 'Such topics are for the server itself.'),
        ('topic', octet_length(v_topic) > 1024, 'may not have more than 1024 bytes', null),
        ('qos', p_config -> 'qos' = '0' and p_config -> 'allow_loss' is distinct from 'true', 'may not be 0 without allow_loss',
         'A server does not acknowledge messages of QoS 0. Use 1 or 2, or set allow_loss to true if messages may get lost.'),
        ('allow_loss', p_config -> 'allow_loss' = 'true' and p_config -> 'qos' is distinct from '0', 'goes with qos 0', 'With QoS 1 and 2 nothing gets lost on the way.'),
        ('no_subscribers', v_old and p_config ->> 'no_subscribers' = 'retry', 'goes with version 5', 'A server of MQTT 3.1.1 does not say whether anyone subscribes.'),
        ('no_subscribers', p_config -> 'qos' = '0' and p_config ->> 'no_subscribers' = 'retry', 'goes with qos 1 or 2', null),
        ('headers', v_old and p_config ? 'headers', 'goes with version 5', 'MQTT 3.1.1 carries the payload and nothing else.'),
        ('cloudevents.mode', v_old and p_config #>> '{cloudevents,mode}' = 'binary', 'may not be binary with version 3.1.1',
         'MQTT 3.1.1 carries the payload and nothing else: use structured.')
      ) w(path, wrong, what, hint) where w.wrong
    union all
    select 'allow_overrides.topic', 'must list topics of up to 1024 bytes without +, # and a $ at the beginning', null
      from jsonb_array_elements_text(p_config #> '{allow_overrides,topic}') t(topic) where t.topic ~ '[+#]' or t.topic like '$%' or octet_length(t.topic) > 1024
    ) r limit 1;
  if found then
    perform menzil._refuse_config(v_wrong.path, v_wrong.what, v_wrong.hint);
  end if;
end $$;
