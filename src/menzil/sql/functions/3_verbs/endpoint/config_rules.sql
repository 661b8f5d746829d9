-- What the config of an endpoint may hold: one row per key, nested keys with their path. This list is the whole truth;
-- a key that is not here is refused. Kinds: see _check_config. Minimum and maximum bound a number, the length of a text or
-- the size of a list.
create or replace function menzil._config_rules(p_protocol text)
returns table (path text, kind text, minimum numeric, maximum numeric, choices text[])
language sql stable as $$
  select r.path, r.kind, r.minimum, r.maximum, r.choices
    from menzil.protocol p cross join jsonb_to_recordset(p.rules) r(path text, kind text, minimum numeric, maximum numeric, choices text[])
   where p.name = p_protocol and p.name <> all (menzil._built_in_protocols())
  union all
  select r.* from (values
      ('url', 'url', null::numeric, null::numeric, null::text[]),
      ('method', 'choice', null, null, '{POST,PUT,PATCH,DELETE,GET}'),
      ('headers', 'headers', 0, 100, null),
      ('overridable_headers', 'header names', 0, 100, null),             -- of headers, those that a message may replace
      ('timeout_seconds', 'number', 1, 300, null),                       -- of one whole request
      ('connect_timeout_seconds', 'number', 0.1, 300, null),
      ('success_statuses', 'statuses', 1, 50, null),                     -- default: 200 to 299
      ('allow_path_suffix', 'boolean', null, null, null),                -- messages may append to the path
      ('auto_disable_on_gone', 'boolean', null, null, null),             -- 410 disables the endpoint
      ('capture_response', 'boolean', null, null, null),                 -- instead of the setting of that name

      ('auth', 'object', null, null, null),
      ('auth.type', 'choice', null, null, '{basic,bearer,oauth2,sigv4}'),
      ('auth.username', 'text', 1, 255, null),
      ('auth.password', 'secret', 0, 8192, null),
      ('auth.token', 'secret', 1, 8192, null),
      ('auth.token_url', 'url', null, null, null),
      ('auth.client_id', 'text', 1, 1024, null),
      ('auth.client_secret', 'secret', 1, 8192, null),
      ('auth.client_auth', 'choice', null, null, '{basic,body}'),        -- where the client id and secret travel
      ('auth.scope', 'text', 1, 4096, null),
      ('auth.audience', 'text', 1, 2048, null),
      ('auth.access_key_id', 'text', 1, 128, null),
      ('auth.secret_access_key', 'secret', 1, 256, null),
      ('auth.session_token', 'secret', 1, 8192, null),
      ('auth.region', 'text', 1, 64, null),
      ('auth.service', 'text', 1, 64, null),

      ('signing', 'object', null, null, null),                           -- Standard Webhooks
      ('signing.secret', 'signing secret', null, null, null),
      ('signing.secrets', 'signing secrets', 1, 5, null),                -- each signs: the new one first, then the old ones

      ('cloudevents', 'object', null, null, null),
      ('cloudevents.mode', 'choice', null, null, '{binary,structured}'),
      ('cloudevents.source', 'text', 1, 1024, null),
      ('cloudevents.type', 'text', 1, 1024, null),

      ('rate_limit', 'limit object', null, null, null),                  -- these two are kept as limits of the channel
      ('rate_limit.count', 'integer', 1, 2147483647, null),
      ('rate_limit.interval_ms', 'integer', 1, 86400000, null),
      ('max_concurrency', 'limit', 1, 2147483647, null),

      ('tls', 'object', null, null, null),
      ('tls.verify', 'boolean', null, null, null),
      ('tls.ca', 'certificate', null, 262144, null),
      ('tls.cert', 'certificate', null, 262144, null),
      ('tls.key', 'private key', null, 65536, null),

      ('proxy', 'object', null, null, null),
      ('proxy.url', 'url', null, null, null),
      ('proxy.username', 'text', 1, 255, null),
      ('proxy.password', 'secret', 0, 8192, null)
    ) r(path, kind, minimum, maximum, choices)
   where p_protocol = 'http'
  union all
  select r.path, r.kind, r.minimum, r.maximum, r.choices from (values
      ('{kafka,nats}'::text[], 'servers', 'servers', 1::numeric, 10::numeric, null::text[]),   -- of NATS: tried in this order
      ('{kafka}', 'topic', 'topic', 1, 249, null),
      ('{kafka}', 'key', 'record key', 1, 1024, '{ordering_key,message_id,none}'),   -- default: ordering_key
      ('{kafka}', 'partition', 'integer', 0, 2147483647, null),
      ('{kafka}', 'partitioner', 'choice', null, null, '{murmur2_random,consistent_random}'),
      ('{kafka}', 'compression', 'choice', null, null, '{lz4,none,gzip,snappy,zstd}'),
      ('{kafka}', 'linger_ms', 'integer', 0, 1000, null),                -- default: 2
      ('{kafka}', 'max_message_bytes', 'integer', 1000, 1000000000, null),
      ('{kafka}', 'client_id', 'text', 1, 249, null),
      ('{kafka}', 'options', 'options', null, null, null),               -- of librdkafka, see _check_kafka_config
      ('{kafka}', 'allow_overrides.topic', 'values', 1, 1000, null),
      ('{amqp}', 'allow_overrides.routing_key', 'values', 1, 1000, null),
      ('{mqtt}', 'allow_overrides.topic', 'values', 1, 1000, null),
      ('{nats}', 'allow_overrides.subject', 'values', 1, 1000, null),
      ('{redis}', 'allow_overrides.stream', 'values', 1, 1000, null),
      ('{nats}', 'subject', 'subject', 1, 255, null),
      ('{nats}', 'stream', 'text', 1, 255, null),                        -- another stream must not take the message
      ('{nats}', 'dedup', 'boolean', null, null, null),                  -- default: true
      ('{nats}', 'message_ttl', 'boolean', null, null, null),            -- what is left until expires_at goes along

      ('{amqp}', 'host', 'host', null, null, null),
      ('{amqp}', 'port', 'integer', 1, 65535, null),                     -- default: 5672, with tls 5671
      ('{amqp}', 'vhost', 'text', 1, 255, null),                         -- default: /
      ('{amqp}', 'exchange', 'text', 0, 255, null),                      -- empty: the default exchange
      ('{amqp}', 'routing_key', 'text', 0, 255, null),
      ('{amqp}', 'mandatory', 'boolean', null, null, null),              -- default: true
      ('{amqp}', 'unroutable', 'choice', null, null, '{retry,dead_letter}'),
      ('{amqp}', 'persistent', 'boolean', null, null, null),             -- default: true
      ('{amqp}', 'heartbeat_seconds', 'integer', 1, 600, null),          -- default: 20
      ('{amqp}', 'auth.type', 'choice', null, null, '{plain,external}'),

      ('{redis}', 'host', 'host', null, null, null),
      ('{redis}', 'port', 'integer', 1, 65535, null),
      ('{redis}', 'db', 'integer', 0, 65535, null),
      ('{redis}', 'stream', 'text', 1, 1024, null),
      ('{redis}', 'maxlen', 'integer', 1, 9007199254740991, null),
      ('{redis}', 'maxlen_exact', 'boolean', null, null, null),
      ('{redis}', 'create_stream', 'boolean', null, null, null),         -- default: true
      ('{redis}', 'durability', 'choice', null, null, '{reply,fsync,replicas}'),
      ('{redis}', 'replicas', 'integer', 1, 100, null),
      ('{redis}', 'dedup_seconds', 'integer', 0, 604800, null),          -- 0: an id is not remembered

      ('{mqtt}', 'host', 'host', null, null, null),
      ('{mqtt}', 'port', 'integer', 1, 65535, null),                     -- default: 1883, with tls 8883
      ('{mqtt}', 'topic', 'text', 1, 1024, null),
      ('{mqtt}', 'version', 'choice', null, null, '{5,3.1.1}'),
      ('{mqtt}', 'qos', 'integer', 0, 2, null),                          -- default: 1
      ('{mqtt}', 'allow_loss', 'boolean', null, null, null),             -- QoS 0 is refused without it
      ('{mqtt}', 'retain', 'boolean', null, null, null),
      ('{mqtt}', 'client_id', 'text', 1, 128, null),                     -- its beginning: worker and connection follow
      ('{mqtt}', 'keepalive_seconds', 'integer', 5, 3600, null),
      ('{mqtt}', 'no_subscribers', 'choice', null, null, '{ok,retry}'),
      ('{mqtt}', 'inflight', 'integer', 1, 65535, null),                 -- messages that wait for their acknowledgement

      ('{broker}', 'allow_overrides', 'object', null, null, null),   -- what a message may change, and to which values
      ('{broker}', 'headers', 'headers', 0, 100, null),
      ('{broker}', 'timeout_seconds', 'number', 1, 300, null),           -- from handing over to the acknowledgement
      ('{broker}', 'connect_timeout_seconds', 'number', 0.1, 300, null),
      ('{broker}', 'capture_response', 'boolean', null, null, null),
      ('{broker}', 'auth', 'object', null, null, null),
      ('{nats}', 'auth.type', 'choice', null, null, '{token,password,nkey,credentials}'),
      ('{kafka}', 'auth.type', 'choice', null, null, '{plain,scram-sha-256,scram-sha-512,oauth2}'),
      ('{kafka}', 'auth.token_url', 'url', null, null, null),
      ('{kafka}', 'auth.client_id', 'text', 1, 1024, null),
      ('{kafka}', 'auth.client_secret', 'secret', 1, 8192, null),
      ('{kafka}', 'auth.client_auth', 'choice', null, null, '{basic,body}'),
      ('{kafka}', 'auth.scope', 'text', 1, 4096, null),
      ('{kafka}', 'auth.audience', 'text', 1, 2048, null),
      ('{broker}', 'auth.username', 'text', 1, 255, null),
      ('{broker}', 'auth.password', 'secret', 0, 8192, null),
      ('{nats}', 'auth.token', 'secret', 1, 8192, null),
      ('{nats}', 'auth.nkey_seed', 'secret', 58, 58, null),
      ('{nats}', 'auth.credentials', 'credentials', null, 65536, null),  -- the text of a .creds file
      ('{broker}', 'cloudevents', 'object', null, null, null),
      ('{broker}', 'cloudevents.mode', 'choice', null, null, '{binary,structured}'),
      ('{broker}', 'cloudevents.source', 'text', 1, 1024, null),
      ('{broker}', 'cloudevents.type', 'text', 1, 1024, null),
      ('{broker}', 'rate_limit', 'limit object', null, null, null),
      ('{broker}', 'rate_limit.count', 'integer', 1, 2147483647, null),
      ('{broker}', 'rate_limit.interval_ms', 'integer', 1, 86400000, null),
      ('{broker}', 'max_concurrency', 'limit', 1, 2147483647, null),
      ('{broker}', 'tls', 'object', null, null, null),
      ('{broker}', 'tls.enabled', 'boolean', null, null, null),          -- default: true, once there is a tls
      ('{broker}', 'tls.verify', 'boolean', null, null, null),
      ('{broker}', 'tls.ca', 'certificate', null, 262144, null),
      ('{broker}', 'tls.cert', 'certificate', null, 262144, null),
      ('{broker}', 'tls.key', 'private key', null, 65536, null)
    ) r(protocols, path, kind, minimum, maximum, choices)
   where p_protocol = any (r.protocols) or r.protocols = '{broker}' and p_protocol = any ('{amqp,kafka,mqtt,nats,redis}')
  union all
  select r.* from menzil._bridge_rules(p_protocol) r
$$;
