-- A topic of Kafka.
create or replace function menzil._is_topic(p_topic text) returns boolean
language sql immutable parallel safe
return p_topic ~ '^[A-Za-z0-9._-]{1,249}$' and p_topic not in ('.', '..');
