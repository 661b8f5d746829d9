-- Fills cause, error_class and cause_hash of dead letters from before these columns, newest first, at most p_limit. SKIP LOCKED
-- leaves letters that another transaction is redriving. Returns how many.
create or replace function menzil._explain_letters(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_count integer;
begin
  with part as materialized (
    select d.ctid as at, coalesce(d.last_error, '') as error from menzil.dead_letter d where d.cause_hash is null order by d.id desc limit p_limit for update skip locked
  ), explained as materialized (   -- many letters have one error
    select t.error, e.* from (select distinct p.error from part p) t cross join lateral menzil._cause_of(t.error) e
  )
  update menzil.dead_letter d set cause = e.cause, error_class = e.error_class, cause_hash = e.cause_hash
    from part p join explained e on e.error = p.error where d.ctid = p.at;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
