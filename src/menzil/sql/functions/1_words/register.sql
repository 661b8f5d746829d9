-- Reads a register: a sequence that holds one value without versions. An expression, not a statement: it costs next to
-- nothing where it stands.
create or replace function menzil._register(p_name regclass) returns bigint
language sql volatile
return coalesce(pg_sequence_last_value(p_name), 0);
