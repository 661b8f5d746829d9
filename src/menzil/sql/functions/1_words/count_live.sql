-- Live messages, counted by the rows that hold them: lines and runs know how many they are.
create or replace function menzil._count_live() returns bigint
language sql stable set enable_seqscan = on as $$
  select coalesce((select sum(r.n) from menzil.run r), 0)
       - coalesce((select sum(l.gone) from menzil.lane l where l.gone > 0), 0)
       + coalesce((select sum(n.n) from menzil.line n where n.flags & 64 = 0), 0)
       + coalesce((select sum(n.n) from menzil.aside n where n.flags & 64 = 0), 0)
       + coalesce((select sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)) from menzil.lease l), 0)
       + (select count(*) from menzil.scheduled)
       + (select count(*) from menzil.key_queue k where k.waits = 1)
       - (select count(*) from menzil.withdrawn)
$$;
