create or replace function menzil._refuse_unknown_plan(p_id bigint) returns void
language plpgsql as $$
begin
  raise exception using errcode = '42704', message = format('There is no plan %s.', p_id),
    hint = 'The view menzil.plans lists them; drafts that were not run are deleted after a day.';
end $$;
