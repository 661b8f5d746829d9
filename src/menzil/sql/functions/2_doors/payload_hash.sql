create or replace function menzil._payload_hash(p_payload jsonb, p_content bytea) returns text
language sql immutable parallel safe
return case when p_content is null then md5(p_payload::text) else md5(p_content) end;
