-- What the keys of the config of a broker mean together.
create or replace function menzil._check_broker_config(p_protocol text, p_config jsonb) returns void
language plpgsql immutable as $$
declare
  v_nats boolean := p_protocol = 'nats';
  v_wrong record;
begin
  if p_protocol = 'kafka' then
    perform menzil._check_kafka_config(p_config);
    return;
  end if;
  select r.path, r.what, r.hint into v_wrong from (
    select n.path, 'is needed' as what, null as hint from (values
        ('servers', v_nats),
        ('subject', v_nats),
        ('host', not v_nats),
        ('stream', not v_nats),
        ('replicas', p_config ->> 'durability' = 'replicas')
      ) n(path, needed) where n.needed and p_config #> string_to_array(n.path, '.') is null
    union all
    select f.path, f.what, f.hint from menzil._common_faults(p_protocol, p_config) f
    union all
    select f.path, f.what, f.hint from menzil._auth_faults(p_protocol, p_config) f
    union all
    select 'headers.' || h.name, 'may not be set', 'Headers that begin with Nats- are for the server itself.'
      from jsonb_object_keys(p_config -> 'headers') h(name) where v_nats and lower(h.name collate "C") like 'nats-%'
    union all
    select 'allow_overrides.subject', 'must list subjects: words joined by dots, without spaces, *, > and a $ at the beginning', null
      from jsonb_array_elements_text(p_config #> '{allow_overrides,subject}') s(subject) where not menzil._is_subject(s.subject)
    union all
    select 'replicas', 'goes with durability fsync or replicas', null where p_config ? 'replicas' and coalesce(p_config ->> 'durability', 'reply') = 'reply'
    union all
    select 'maxlen_exact', 'goes with maxlen', null where p_config ? 'maxlen_exact' and not p_config ? 'maxlen'
    ) r limit 1;
  if found then
    perform menzil._refuse_config(v_wrong.path, v_wrong.what, v_wrong.hint);
  end if;
end $$;
