-- What the config of a bridge may hold, by the name that its rules have among those of endpoints: 'redis bridge'. How to reach a server
-- is the same both ways, so those rules are the endpoint's.
create or replace function menzil._bridge_rules(p_protocol text)
returns table (path text, kind text, minimum numeric, maximum numeric, choices text[])
language plpgsql stable as $$   -- not SQL: the planner would inline this function and _config_rules into each other without end
declare
  v_source text := split_part(p_protocol, ' ', 1);
begin
  if p_protocol not like '% bridge' then
    return;
  end if;
  return query
    select r.path, r.kind, r.minimum, r.maximum, r.choices from menzil._config_rules(v_source) r
     where r.path ~ E'^(servers|host|port|db|vhost|heartbeat_seconds|auth|tls|connect_timeout_seconds)(\\.|$)' and v_source <> 'kafka'
    union all
    select r.path, r.kind, r.minimum, r.maximum, r.choices from (values
        ('{redis,nats,kafka}'::text[], 'start', 'text', 1::numeric, 64::numeric, null::text[]),   -- earliest, latest, or a position
        ('{redis,nats,kafka,amqp,mqtt}', 'body', 'choice', null, null, '{auto,json,bytes}'),
        ('{redis,nats,kafka,amqp,mqtt}', 'batch', 'integer', 1, 5000, null),         -- most records of one transaction
        ('{redis,nats,kafka,amqp,mqtt}', 'max_record_bytes', 'integer', 1024, 536870912, null),
        ('{redis}', 'stream', 'text', 1, 1024, null),
        ('{nats}', 'stream', 'text', 1, 255, null),
        ('{nats}', 'subject', 'text', 1, 255, null),                                 -- only these of the stream; * and > are allowed
        ('{amqp}', 'queue', 'text', 1, 255, null),
        ('{amqp}', 'exclusive', 'boolean', null, null, null),                        -- no other consumer beside this one; default: true
        ('{mqtt}', 'topic', 'text', 1, 1024, null),                                  -- a filter: + and # are allowed
        ('{mqtt}', 'version', 'choice', null, null, '{5,3.1.1}'),
        ('{mqtt}', 'client_id', 'text', 1, 128, null),                               -- of the session that the server keeps
        ('{mqtt}', 'keepalive_seconds', 'integer', 5, 3600, null),
        ('{mqtt}', 'inflight', 'integer', 1, 65535, null),
        ('{mqtt}', 'session_seconds', 'integer', 60, 4294967295, null),              -- how long the server keeps it; MQTT 5
        ('{kafka}', 'servers', 'servers', 1, 10, null),
        ('{kafka}', 'topic', 'text', 1, 249, null),
        ('{kafka}', 'connect_timeout_seconds', 'number', 0.1, 300, null),
        ('{kafka}', 'auth', 'object', null, null, null),
        ('{kafka}', 'auth.type', 'choice', null, null, '{plain,scram-sha-256,scram-sha-512}'),
        ('{kafka}', 'auth.username', 'text', 1, 255, null),
        ('{kafka}', 'auth.password', 'secret', 0, 8192, null),
        ('{kafka}', 'tls', 'object', null, null, null),
        ('{kafka}', 'tls.enabled', 'boolean', null, null, null),
        ('{kafka}', 'tls.verify', 'boolean', null, null, null),
        ('{kafka}', 'tls.ca', 'certificate', null, 262144, null),
        ('{kafka}', 'tls.cert', 'certificate', null, 262144, null),
        ('{kafka}', 'tls.key', 'private key', null, 65536, null)
      ) r(sources, path, kind, minimum, maximum, choices)
     where v_source = any (r.sources);
end $$;
