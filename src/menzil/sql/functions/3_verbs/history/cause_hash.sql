-- The name of a cause: the same in every database.
create or replace function menzil._cause_hash(p_error_class text, p_cause text) returns text
language sql immutable parallel safe
return left(encode(sha256(convert_to(p_error_class || ' ' || p_cause, 'UTF8')), 'hex'), 12);
