create or replace function menzil._refuse_null(p_what text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '22004', hint = 'Pass a value that is not NULL.',
    message = format('%s %s needed, NULL was given.', p_what, case when p_what like '% and %' and p_what not like 'Each %' then 'are' else 'is' end);
end $$;
