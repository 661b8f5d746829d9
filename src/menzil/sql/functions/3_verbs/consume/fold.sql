-- Folds the log: lines become runs of lanes and changes of gates. docs/decisions/0012-log-runs-and-proofs.md says why no
-- line is missed. A look reads lines of transactions that began to write after the newest proof, and late lines while they
-- are few. A full look, ten times a second at most, always reads the late lines and writes a new proof. Lines of lanes and
-- gates that another transaction holds stay in the log.
create or replace function menzil._fold(p_now timestamptz, p_full boolean, p_limit integer default 300) returns integer
language plpgsql as $$
declare
  v_from xid8;
  v_late xid8[];
  v_look record;
  v_proof record;
  v_mine tid[] := '{}';
  v_rows menzil.line[];
  v_keys bigint[] := '{}';    -- channel * 16 + rank of the lanes that are locked by now; rank 15 is the gate
  v_left xid8[] := '{}';
begin
  -- The transaction that wrote a proof stands in it as late. A proof that a restore wrote speaks of another cluster.
  select k.folded_to, k.late into v_from, v_late from (select k.*, k.xmin from menzil.look k order by k.id desc limit 1) k where k.xmin = any (k.late::xid[]);
  if v_from is null or v_from > pg_snapshot_xmax(pg_current_snapshot()) then   -- no proof
    v_from := '0';
    v_late := '{}';
  end if;
  if p_full then
    p_limit := least(2000, greatest(p_limit, menzil._at_once()));   -- a dequeue takes fewer where a timeout threatens
  end if;
  -- One statement, so that the lines and the snapshot that the proof speaks of belong together.
  if v_late <> '{}' and (p_full or cardinality(v_late) <= 16) then
    select array_agg(t.at) as ats, array_agg(t.key) as keys, array_agg(t.xid) as xids, array_agg(t.o = 0 or t.xid = v_from) as old, pg_current_snapshot() as snap,
           max(t.o) as seen, max(t.xid) filter (where t.o > 0) as last into v_look
      from (select a.at, a.key, a.xid, 0 as o from unnest(v_late) x(xid)
              cross join lateral (select a.ctid as at, a.channel_id::bigint * 16 + coalesce(a.rank, 15) as key, a.xid from menzil.line a
                                   where a.xid = x.xid offset 0) a
            union all
            (select a.ctid, a.channel_id::bigint * 16 + coalesce(a.rank, 15), a.xid, row_number() over (order by a.xid) from menzil.line a
              where a.xid >= v_from order by a.xid limit p_limit)) t;
  else
    select array_agg(t.at) as ats, array_agg(t.key) as keys, array_agg(t.xid) as xids, array_agg(t.xid = v_from) as old, pg_current_snapshot() as snap,
           count(*) as seen, max(t.xid) as last into v_look
      from (select a.ctid as at, a.channel_id::bigint * 16 + coalesce(a.rank, 15) as key, a.xid from menzil.line a
             where a.xid >= v_from order by a.xid limit p_limit) t;
  end if;
  if v_look.ats is not null then
    if array_remove(v_look.keys, v_look.keys[1]) = '{}' then
      v_keys := menzil._lock_lanes(v_look.keys[1:1]);
      if v_keys <> '{}' then
        v_mine := v_look.ats;
      end if;
    else
      v_keys := menzil._lock_lanes(array(select distinct u.key from unnest(v_look.keys) u(key)));
      v_mine := array(select u.at from unnest(v_look.ats, v_look.keys) u(at, key) where (u.key in (select k.key from unnest(v_keys) k(key))) is true);   -- is true: else a nested loop, as hash joins are off here
    end if;
    if v_mine <> '{}' then
      v_rows := menzil._take_lines(v_mine, v_keys);
    end if;
    if p_full and (cardinality(v_mine) < cardinality(v_look.ats) or cardinality(v_rows) is distinct from cardinality(v_mine)) then
      v_left := menzil._leave_lines(v_look.ats, v_look.xids, v_look.old, v_mine);
    end if;
  end if;
  if (p_full or v_keys <> '{}') and exists (select 1 from menzil.aside) then
    v_rows := menzil._take_aside(p_full, v_keys) || v_rows;
  end if;
  if p_full then
    -- The proof commits with this transaction: every line it saw is folded here, or named as late. This transaction may
    -- still write lines, and pg_snapshot_xip does not hold the own xid: it is late as well.
    -- The last line may be one that a restore brought, with an id that is yet to come: sends of this cluster would lie below the proof.
    v_from := least(case when v_look.seen >= p_limit then v_look.last end, pg_snapshot_xmax(v_look.snap));
    if v_look.seen > 0 or v_late <> '{}' or p_now - (select k.at from menzil.look k order by k.id desc limit 1) < interval '1 s' is not true then
      insert into menzil.look (at, folded_to, late)
        select p_now, v_from, array(select l.x from unnest(v_left) l(x) where l.x < v_from union select pg_current_xact_id()
                                    union select x.x from pg_snapshot_xip(v_look.snap) x(x) where x.x < v_from)
      returning look.id, look.xmin into v_proof;
      if v_proof.xmin <> pg_current_xact_id()::xid then   -- inside a savepoint, which has a transaction id of its own
        update menzil.look k set late = k.late || v_proof.xmin::text::xid8 where k.id = v_proof.id;
      end if;
    end if;
  end if;
  if v_rows is null then
    return 0;
  end if;
  perform menzil._fold_rows(p_now, v_rows);
  return cardinality(v_rows);
end $$;

-- Takes these lines out of the log. A newer snapshot than that of the look: a line that another fold took is not seen, and
-- the locks keep other folds away. VACUUM may have given a line's place to another line: hence the keys. A line that
-- another transaction is putting aside is skipped, and found there.
create or replace function menzil._take_lines(p_at tid[], p_keys bigint[]) returns menzil.line[]
language plpgsql as $$
declare
  v_rows menzil.line[];
begin
  with gone as (
    delete from menzil.line a where a.ctid = any (array(
      select b.ctid from menzil.line b
       where b.ctid = any (p_at) and (b.channel_id::bigint * 16 + coalesce(b.rank, 15) in (select k.key from unnest(p_keys) k(key))) is true
         for update skip locked))
    returning a.*
  )
  select array_agg(row(g.*)::menzil.line order by g.xid) into v_rows from gone g;
  return v_rows;
end $$;

-- Lines that a full look could not fold. A line that is left for the second time is put aside, so that the list of late
-- lines stays short while a transaction holds a lane for minutes, and a look is not filled with lines that it cannot fold. Returns the xids of the lines that stay in the log.
create or replace function menzil._leave_lines(p_at tid[], p_xids xid8[], p_old boolean[], p_mine tid[]) returns xid8[]
language plpgsql as $$
declare
  v_old tid[];
  v_moved tid[] := '{}';
begin
  v_old := array(select u.at from unnest(p_at, p_old) u(at, old) where u.old and u.at not in (select k.at from unnest(p_mine) k(at)));
  if v_old <> '{}' then
    v_old := array(select b.ctid from menzil.line b where b.ctid = any (v_old) for update skip locked);
    with gone as (
      delete from menzil.line a where a.ctid = any (v_old) returning a.ctid as at, a.*
    ), put as (
      insert into menzil.aside select g.xid, g.channel_id, g.rank, g.due_at, g.first_id, g.n, g.flags, g.ids, g.ordering_key, g.epoch, g.freed, g.news,
                                      g.news_count, g.news_at, g.wait_until from gone g
    )
    select coalesce(array_agg(g.at), '{}') into v_moved from gone g;
  end if;
  return array(select distinct u.xid from unnest(p_xids, p_at) u(xid, at)
                where u.at not in (select k.at from unnest(v_moved) k(at))
                  and (u.at not in (select k.at from unnest(p_mine) k(at)) or exists (select 1 from menzil.line b where b.ctid = u.at)));
end $$;
