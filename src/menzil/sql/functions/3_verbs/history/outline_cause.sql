-- The cause of all errors that have this outline.
create or replace function menzil._outline_cause(p_outline text) returns text
language plpgsql immutable parallel safe as $$
declare
  v_error text := regexp_replace(p_outline, E'^\\s*(\\[(RETRYABLE|PERMANENT|DISABLE)\\]\\s*)+', '');
  v_status text := coalesce(substring(v_error from E'^HTTP [0-9]{3}\\M'), '');
begin
  -- Times, ids, numbers: of those that fit at a place the longest is taken.
  v_error := regexp_replace(translate(substr(v_error, length(v_status) + 1), E'\n\r\t', '   '),
    E'[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(Z|[+-][0-9:]+)?|\\m(0x)?[a-fA-F]*[0-9][[:xdigit:]]{7,}\\M|[0-9]+([.,][0-9]+)*', '#', 'g');
  return v_status || left(rtrim(v_error), 200);
end $$;
