-- Adds up how many ids are gone: their messages ended, or their senders rolled back. Returns how many messages there are at most.
-- docs/decisions/0008-backpressure.md says why the number of ids that are gone is never too high. Ends are added up from done, so
-- only those that committed count. The newest row of tally says which transactions it covers: those before counted_to, but for
-- late ones. p_count: live messages are counted too, to find ids whose senders rolled back. p_note:
-- a row is written also where nothing has ended since the last one.
drop function if exists menzil._tally(boolean);
create or replace function menzil._tally(p_count boolean, p_note boolean default false) returns bigint
language plpgsql as $$
declare
  v_ids bigint := menzil._register('menzil.message_id');   -- read before the snapshot: a later id is not taken for gone
  v_own xid8 := pg_current_xact_id_if_assigned();
  v_open record;   -- senders, read before the snapshot as well: one that ends meanwhile counts as open
  v_last record;
  v_now record;
  v_gone bigint;
  v_most bigint;
  v_marked bigint;   -- ids given out at the last count
  v_mark bigint;     -- no transaction from here on had drawn one of them
  v_id bigint;
  v_inside xid;
begin
  if p_count then
    select * into v_open from menzil._open_senders();
    -- Ids first, and written last: beside another count an old number of ids may meet a new mark, which errs upwards, never the reverse.
    v_marked := menzil._register('menzil.counted_ids');
    v_mark := menzil._register('menzil.counted_xid');
    if v_mark > v_open.next + 1000000 then   -- of another cluster
      v_mark := 0;
    end if;
  end if;
  -- A tally that a restore wrote speaks of transactions of another cluster.
  select t.ended, case when t.holds then t.gone end as gone, case when t.holds then t.counted_to end as counted_to, t.late into v_last
    from (select t.*, t.xmin = any (t.writer) and t.counted_to <= pg_snapshot_xmax(pg_current_snapshot()) as holds from menzil.tally t order by t.id desc limit 1) t;
  if v_last.gone is null and v_last.ended is not null and not p_count then   -- the next count finds out
    return v_ids - menzil._register('menzil.ended_count');
  end if;
  -- One statement: what it counts and the snapshot that the new tally speaks of belong together. The ends of this transaction may
  -- still roll back: its messages count as live, and its id is late. Ends that a restore brought were counted by what is live: their
  -- transaction ids are yet to come, or younger than that of the restore that wrote the row.
  select pg_current_snapshot() as snap,
         (select coalesce(sum(d.n), 0) from menzil.done d where d.ended_xid >= v_last.counted_to and d.ended_xid < pg_snapshot_xmax(pg_current_snapshot())
             and d.ended_xid is distinct from v_own and age(d.xmin) <= age(d.ended_xid::xid))
       + (select coalesce(sum(d.n), 0) from menzil.done d where d.ended_xid = any (v_last.late) and v_last.counted_to is not null and d.ended_xid is distinct from v_own
             and age(d.xmin) <= age(d.ended_xid::xid))
         as ended,
         case when p_count then menzil._count_live() + (select coalesce(sum(d.n), 0) from menzil.done d where d.ended_xid = v_own) end as live
    into v_now;
  v_gone := coalesce(v_last.gone, 0) + v_now.ended;
  v_most := v_ids - v_gone;
  -- An older snapshot does not show messages whose ids were given out before v_ids was read.
  if p_count and current_setting('transaction_isolation') = 'read committed' then
    if v_open.n = 0 then
      v_most := v_now.live;
    elsif v_mark > 0 and v_open.since >= v_mark then
      -- Every sender that was open at the last count has ended: ids given out before it are not in doubt any more.
      v_most := least(v_most, v_now.live + v_ids - v_marked);
    end if;
    -- One session writes the mark at a time; another one leaves it as it is. A stranger that holds this lock delays the mark only.
    if v_open.all_named and (v_open.n = 0 or v_open.since >= v_mark) and pg_try_advisory_lock('menzil.tally'::regclass::oid::integer, 1) then
      perform setval('menzil.counted_xid', greatest(v_open.next, pg_snapshot_xmax(v_now.snap)::text::bigint));
      perform setval('menzil.counted_ids', v_ids);
      perform pg_advisory_unlock('menzil.tally'::regclass::oid::integer, 1);
    end if;
    v_gone := greatest(v_gone, v_ids - v_most);
  end if;
  if v_gone is distinct from v_last.gone or p_note then
    insert into menzil.tally (counted_to, late, ended, gone, writer)
      select pg_snapshot_xmax(v_now.snap), array(select x.x from pg_snapshot_xip(v_now.snap) x(x) union select v_own where v_own < pg_snapshot_xmax(v_now.snap)),
             coalesce(v_last.ended, 0) + v_now.ended, v_gone, array[pg_current_xact_id()::xid]
    returning tally.id, tally.xmin into v_id, v_inside;
    if v_inside <> pg_current_xact_id()::xid then   -- inside a savepoint, which has a transaction id of its own
      update menzil.tally t set writer = t.writer || v_inside where t.id = v_id;
    end if;
  end if;
  perform setval('menzil.ended_count', v_gone);
  -- The limit may lag by 2,000 messages: so many ids in doubt do not make the queue full.
  return case when p_count then v_now.live + greatest(0, v_ids - v_gone - v_now.live - 2000) else v_ids - v_gone end;
end $$;
