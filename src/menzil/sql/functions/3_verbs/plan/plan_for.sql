-- The plan of that id for an operator's action, locked against other operators, or a refusal. NO KEY: steps that are under way
-- write rows that refer to it, and neither waits for the other.
create or replace function menzil._plan_for(p_id bigint) returns menzil.plan
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_plan menzil.plan;
begin
  if p_id is null then
    perform menzil._refuse_null('The id of a plan');
  end if;
  select p.* into v_plan from menzil.plan p where p.id = p_id for no key update;
  if not found then
    perform menzil._refuse_unknown_plan(p_id);
  end if;
  return v_plan;
end $$;
