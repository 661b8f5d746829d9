-- What a key or value of another outbox is called here: people who come from ulak type its config from memory. Null for all else.
create or replace function menzil._config_spelling(p_path text, p_value jsonb) returns text
language sql immutable as $$
  select coalesce(
    case when p_path = 'rate_limit' and jsonb_typeof(p_value) = 'number'
         then format('A limit of so many per second is {"count": %s, "interval_ms": 1000}.', p_value)
         when p_path = 'cloudevents' and jsonb_typeof(p_value) = 'boolean' then 'Write {"mode": "binary"} or {"mode": "structured"}, or leave the key out.'
         when p_path = 'auth.type' and p_value = '"aws_sigv4"' then 'Did you mean sigv4?'
         when p_path = 'version' and jsonb_typeof(p_value) = 'number' then 'The version is a text: write "5" or "3.1.1".' end,
    (select s.hint from (values
      ('timeout', 'Did you mean timeout_seconds?'),
      ('connect_timeout', 'Did you mean connect_timeout_seconds?'),
      ('signing_secret', 'Did you mean signing.secret? Write {"signing": {"secret": "whsec_..."}}.'),
      ('cloudevents_mode', 'Did you mean cloudevents.mode? Write {"cloudevents": {"mode": "binary"}}.'),
      ('cloudevents_type', 'Did you mean cloudevents.type? Write {"cloudevents": {"mode": "binary", "type": "..."}}.'),
      ('cloudevents_source', 'Did you mean cloudevents.source? Write {"cloudevents": {"mode": "binary", "source": "..."}}.'),
      ('ssl_verify', 'Did you mean tls.verify? Write {"tls": {"verify": false}}; it is on unless it is turned off.'),
      ('tls_ca_bundle', 'Did you mean tls.ca? It takes the certificate itself in PEM format, not the path of a file.'),
      ('tls_client_cert', 'Did you mean tls.cert? It takes the certificate itself in PEM format, not the path of a file.'),
      ('tls_client_key', 'Did you mean tls.key? It takes the key itself in PEM format, not the path of a file.'),
      ('tls_pinned_public_key', 'A key cannot be pinned; give the certificate that you trust as tls.ca.'),
      ('auth.access_key', 'Did you mean auth.access_key_id?'),
      ('auth.secret_key', 'Did you mean auth.secret_access_key?'),
      ('proxy.type', 'The scheme of proxy.url says it: http:// or https://.'),
      ('proxy.no_proxy', 'An endpoint has one URL: leave proxy out where none is to be used.'),
      ('proxy.ca_bundle', 'The proxy is verified by the system''s trust store.'),
      ('proxy.ssl_verify', 'The proxy is verified by the system''s trust store.')
    ) s(path, hint) where s.path = p_path))
$$;
