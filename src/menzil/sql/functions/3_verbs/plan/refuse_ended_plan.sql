create or replace function menzil._refuse_ended_plan(p_plan menzil.plan) returns void
language plpgsql as $$
begin
  raise exception using errcode = '55000', message = format('Plan %s has ended, its status is %s.', p_plan.id, p_plan.status),
    hint = 'Make a new one with menzil.plan_create.';
end $$;
