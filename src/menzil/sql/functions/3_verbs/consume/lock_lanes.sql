-- Locks the lanes and gates with these keys (channel * 16 + rank; rank 15 is the gate) that no other transaction holds, and
-- returns their keys. A lane that does not exist yet is born under its gate's lock, so that a limit that is being set is
-- not missed; while another transaction holds the gate it stays unborn, and its lines stay in the log.
create or replace function menzil._lock_lanes(p_keys bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_got bigint[];
  v_gates integer[];
begin
  if exists (select 1 from unnest(p_keys) k(key) where k.key & 15 <> 15
               and (select 1 from menzil.lane_name l where l.channel_id = (k.key >> 4)::integer and l.rank = (k.key & 15)::smallint) is null) then
    -- The gates first, in a statement of their own: the next one sees a limit that was set before the lock. They are written, so that
    -- a transaction in REPEATABLE READ that sets a limit, and does not see the new lane, fails with 40001.
    with mine as (
      update menzil.gate g set epoch = g.epoch
       where g.ctid = any (array(
         select h.ctid from (select distinct (k.key >> 4)::integer as channel_id from unnest(p_keys) k(key) where k.key & 15 <> 15
                                and (select 1 from menzil.lane_name l where l.channel_id = (k.key >> 4)::integer and l.rank = (k.key & 15)::smallint) is null) u
           cross join lateral (select h.ctid from menzil.gate h where h.channel_id = u.channel_id for update skip locked offset 0) h))
      returning g.channel_id
    )
    select array_agg(m.channel_id) into v_gates from mine m;
    with born as (
      insert into menzil.lane_name (channel_id, rank)
        select u.channel_id, u.rank
          from (select (k.key >> 4)::integer as channel_id, (k.key & 15)::smallint as rank from unnest(p_keys) k(key) where k.key & 15 <> 15) u
         where u.channel_id = any (v_gates) and (select 1 from menzil.lane_name l where l.channel_id = u.channel_id and l.rank = u.rank) is null
         order by 1, 2
        on conflict do nothing returning lane_name.channel_id, lane_name.rank
    )
    insert into menzil.lane (channel_id, rank, gated, push, name)
      select b.channel_id, b.rank, menzil._is_gated(c), c.protocol is not null, c.name
        from born b cross join lateral (select c.* from menzil.channel c where c.id = b.channel_id offset 0) c;
    insert into menzil.rank_used (rank)
      select u.rank from (select distinct (k.key & 15)::smallint as rank from unnest(p_keys) k(key) where k.key & 15 <> 15) u
       where not exists (select 1 from menzil.rank_used r where r.rank = u.rank);
  end if;
  v_got := array(
    select k.key from unnest(p_keys) k(key)
      cross join lateral (select l.ctid as at from menzil.lane l where l.channel_id = (k.key >> 4)::integer and l.rank = (k.key & 15)::smallint
                           order by l.v desc limit 1) n
      cross join lateral (select 1 from menzil.lane l where l.ctid = n.at for update skip locked offset 0) l
     where k.key & 15 <> 15);
  if exists (select 1 from unnest(p_keys) k(key) where k.key & 15 = 15) then
    v_got := v_got || array(
      select k.key from unnest(p_keys) k(key)
        cross join lateral (select 1 from menzil.gate g where g.channel_id = (k.key >> 4)::integer for update skip locked offset 0) g
       where k.key & 15 = 15);
  end if;
  return v_got;
end $$;
