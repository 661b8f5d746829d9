-- An error with zeros for the digits behind its first words (its class, and perhaps an HTTP status), and with marks for
-- quoted texts and UUIDs: quickly made, and its cause is the cause of the error.
create or replace function menzil._error_outline(p_error text) returns text
language plpgsql immutable parallel safe as $$
declare
  v_error text := left(p_error, 40) || translate(substr(p_error, 41, 960), '123456789', '000000000');
begin
  if strpos(v_error, '"') > 0 or strpos(v_error, '''') > 0 then
    v_error := regexp_replace(v_error, E'"(\\\\.|[^"\\\\])*"|(?<!\\w)''[^'']*''(?!\\w)', '"..."', 'g');
  end if;
  if v_error like '%-____-____-____-____________%' then
    v_error := regexp_replace(v_error, '[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}', '#', 'g');
  end if;
  return coalesce(v_error, '');
end $$;
