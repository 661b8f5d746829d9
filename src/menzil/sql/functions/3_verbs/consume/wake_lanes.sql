-- Lanes that their gate held get a turn; the gate is asked again then. A held lane that another transaction has locked is
-- told of in the log, so that the next fold tries again. That transaction may end between two of these statements, and then the
-- version that the first one found is gone: what the first one found decides, not a second look.
create or replace function menzil._wake_lanes(p_channels integer[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_all tid[];
  v_channels integer[];   -- of v_all
  v_mine tid[];
begin
  select array_agg(n.at), array_agg(c.id) into v_all, v_channels from unnest(p_channels) c(id)
    cross join lateral (select k.rank from menzil.lane_name k where k.channel_id = c.id offset 0) k
    cross join lateral (select l.ctid as at, l.next_at, l.tail_due from menzil.lane l where l.channel_id = c.id and l.rank = k.rank order by l.v desc limit 1) n
    where n.next_at is null and n.tail_due is not null;
  if v_all is null then
    return;
  end if;
  v_mine := array(select l.ctid from menzil.lane l where l.ctid = any (v_all) and l.next_at is null and l.tail_due is not null for update skip locked);
  if cardinality(v_mine) < cardinality(v_all) then
    insert into menzil.line (channel_id, epoch, freed)
      select distinct u.channel_id, 0, 0 from unnest(v_all, v_channels) u(at, channel_id) where u.at <> all (v_mine);
  end if;
  update menzil.lane l set next_at = p_now, v = l.v + 1 where l.ctid = any (v_mine);
end $$;
