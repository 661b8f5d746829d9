-- Of what a visit found: expired messages end, those that were withdrawn or are being withdrawn drop out, the rest is
-- leased. When the withdrawal is still open its place must not be forgotten, it may be undone: the lane comes back to it
-- a little later.
create or replace function menzil._sort_out(p_ids bigint[], p_expired bigint[], p_rank smallint, p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
  v_missing record;
begin
  select array_agg(m.id) as ids, array_agg(m.channel_id) as channels, array_agg(m.due_at) as due_ats into v_missing
    from unnest(p_ids) u(id) cross join lateral (
      select m.id, m.channel_id, m.due_at from menzil.message m
       where m.id = u.id and not exists (select 1 from menzil.lease l where l.id = m.id) and m.id <> all (coalesce(p_expired, '{}')) offset 0) m;
  if v_missing.ids is not null then
    perform menzil._fold_lanes(p_now, v_missing.channels, array_fill(p_rank, array[cardinality(v_missing.ids)]), v_missing.due_ats, v_missing.ids,
      array_fill(false, array[cardinality(v_missing.ids)]));
    update menzil.lane l set next_at = p_now + interval '20 ms' where l.channel_id = any (v_missing.channels) and l.rank = p_rank;
  end if;
  if p_expired is not null then
    perform menzil._end_messages(p_expired, 'expired', p_now);
  end if;
  return array(select u.id from unnest(p_ids) with ordinality u(id, n) where exists (select 1 from menzil.lease l where l.id = u.id) order by u.n);
end $$;
