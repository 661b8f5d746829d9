-- The plan of that id, to be read, or a refusal. Nothing is locked.
create or replace function menzil._known_plan(p_id bigint) returns menzil.plan
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_plan menzil.plan;
begin
  if p_id is null then
    perform menzil._refuse_null('The id of a plan');
  end if;
  select p.* into v_plan from menzil.plan p where p.id = p_id;
  if not found then
    perform menzil._refuse_unknown_plan(p_id);
  end if;
  return v_plan;
end $$;
