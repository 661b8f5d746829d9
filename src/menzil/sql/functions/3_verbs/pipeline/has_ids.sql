-- Whether a partition of message has one with an id in this span.
create or replace function menzil._has_ids(p_name text, p_first bigint, p_last bigint) returns boolean
language plpgsql stable as $$
declare
  v_found boolean;
begin
  execute format('select exists (select 1 from menzil.%I m where m.id between $1 and $2)', p_name) into v_found using p_first, p_last;
  return v_found;
exception when undefined_table then   -- a month that was dropped after the snapshot
  return false;
end $$;
