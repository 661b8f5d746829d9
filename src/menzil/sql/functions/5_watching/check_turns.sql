-- Whether lanes that have no turn are rightly held: messages wait in them, their gate would let messages through, and no line of the
-- log will wake them. No dequeue visits such a lane. One snapshot: a gate is asked and its lane is held in one transaction.
-- Up to 1,000 lanes are looked at, from a channel that is drawn at random on. Returns how many are wrongly held, and a channel.
create or replace function menzil._check_turns(out held integer, out first text)
language sql stable set enable_seqscan = off set jit = off as $$
  with start as materialized (select (random() * coalesce((select max(c.id) from menzil.channel c), 0))::integer as id),
  near as materialized (
    (select k.channel_id, k.rank from menzil.lane_name k where k.channel_id >= (select s.id from start s) order by k.channel_id, k.rank limit 500)
    union all
    (select k.channel_id, k.rank from menzil.lane_name k where k.channel_id < (select s.id from start s) order by k.channel_id, k.rank limit 500)),
  still as materialized (
    select l.name, k.channel_id
      from near k
      cross join lateral (select l.name, l.next_at, l.tail_due from menzil.lane l where l.channel_id = k.channel_id and l.rank = k.rank order by l.v desc limit 1) l
      cross join lateral (select g.* from menzil.gate g where g.channel_id = k.channel_id offset 0) g
     where l.next_at is null and l.tail_due is not null and not g.paused and g.circuit <> 1 and (g.max_concurrency is null or g.in_flight < g.max_concurrency))
  -- The log has no index for this: it is read once, and only where a lane stands still.
  select count(*)::integer, min(s.name) from still s
   where (s.channel_id in (select n.channel_id from menzil.line n where n.rank is null union all select a.channel_id from menzil.aside a where a.rank is null)) is not true
$$;
