-- Of what a visit found: expired messages end, those that were withdrawn in this moment drop out, the rest is leased.
create or replace function menzil._sort_out(p_ids bigint[], p_expired bigint[], p_now timestamptz) returns bigint[]
language plpgsql as $$
begin
  if p_expired is not null then
    perform menzil._end_messages(p_expired, 'expired', p_now);
  end if;
  return array(select u.id from unnest(p_ids) with ordinality u(id, n) where exists (select 1 from menzil.lease l where l.id = u.id) order by u.n);
end $$;
