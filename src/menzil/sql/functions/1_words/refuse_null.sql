create or replace function menzil._refuse_null(p_what text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '22004', message = format('%s is needed, NULL was given.', p_what), hint = 'Pass a value that is not NULL.';
end $$;
