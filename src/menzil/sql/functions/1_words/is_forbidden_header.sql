-- Headers that belong to the connection or are made by the worker itself: neither an endpoint nor a message sets them.
create or replace function menzil._is_forbidden_header(p_name text) returns boolean
language sql immutable parallel safe
return lower(p_name collate "C") in ('connection', 'content-length', 'expect', 'host', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection',
                         'te', 'trailer', 'transfer-encoding', 'upgrade', 'webhook-id', 'webhook-signature', 'webhook-timestamp');
