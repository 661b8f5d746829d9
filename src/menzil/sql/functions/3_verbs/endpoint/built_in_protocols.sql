-- Protocols that every worker speaks.
create or replace function menzil._built_in_protocols() returns text[]
language sql immutable parallel safe
return array['amqp', 'http', 'kafka', 'mqtt', 'nats', 'redis'];
