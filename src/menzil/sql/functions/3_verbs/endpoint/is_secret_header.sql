-- Headers whose values are credentials as a rule are treated as such.
create or replace function menzil._is_secret_header(p_name text) returns boolean
language sql immutable parallel safe
return p_name ~* '(-auth|authorization|authentication|cookie|credential|key|password|secret|signature|token)';
