create or replace function menzil._canon(p_at timestamptz) returns text
language sql stable parallel safe
return coalesce(encode(timestamptz_send(p_at), 'hex'), chr(30));
