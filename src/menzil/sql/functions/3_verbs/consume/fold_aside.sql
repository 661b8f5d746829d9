-- Folds lines that were put aside, for a dequeue that found nothing else. False: nothing was aside, or its lanes are still held.
create or replace function menzil._fold_aside(p_now timestamptz) returns boolean
language plpgsql as $$
declare
  v_rows menzil.line[];
begin
  if exists (select 1 from menzil.aside) then
    v_rows := menzil._take_aside(true, '{}');
  end if;
  if v_rows is not null then
    perform menzil._fold_rows(p_now, v_rows);
  end if;
  return v_rows is not null;
end $$;
