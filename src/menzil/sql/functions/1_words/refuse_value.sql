create or replace function menzil._refuse_value(p_message text, p_hint text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '22023', message = p_message, hint = p_hint;
end $$;
