-- One row per distinct id asked for: what the settle did, or why it did nothing.
-- stale: the token was overtaken, the message lives on; unknown: the message is not in flight.
create or replace function menzil._outcomes(p_ids bigint[], p_attempts bigint[], p_settled bigint[], p_outcome text)
returns table (id bigint, outcome text)
language plpgsql as $$
begin
  if cardinality(p_settled) = cardinality(p_ids) then
    return query select u.id, p_outcome from unnest(p_ids) u(id);
    return;
  end if;
  return query
    select u.id,
           case when u.id in (select s.id from unnest(p_settled) s(id)) then p_outcome
                when menzil._lease_of(u.id) is not null
                  or (select 1 from menzil.returned r where r.id = u.id and u.attempt between 1 and r.attempts) is not null
                     and (menzil._end_of(u.id)).lo_id is null then 'stale'
                else 'unknown' end
      from (select distinct on (w.id) w.id, w.attempt from unnest(p_ids, p_attempts) w(id, attempt) where w.id is not null order by w.id) u;
end $$;
