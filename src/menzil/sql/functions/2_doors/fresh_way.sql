-- The fresh way of a dequeue, as text that install puts into message_dequeue: messages that were just sent to one idle lane of a
-- plain channel are leased from the log at once. They never become a run. One statement, as the short way, and right for the same
-- reason: a fold makes a version of the lane, so if this statement sees the version that it locked, the lines it sees are there.
-- A line that another transaction is putting aside is skipped, and found there. The bodies are read in the same statement: a snapshot
-- that shows a line shows its message. The statement finds no row in every other case.
create or replace function menzil._fresh_way() returns text
language sql immutable
return $way$
    return query
    with parent as (select from only menzil.message), fresh as materialized (   -- the parent is locked before its partition: see send
      select a.ctid as at, a.channel_id, a.rank, a.due_at, a.n, a.flags from menzil.line a
       where a.xid >= (select k.folded_to from menzil.look k order by k.id desc limit 1) order by a.xid limit p_limit + 1
    ), lane as materialized (
      select l.ctid as at, l.name
        from (select min(f.channel_id) as channel_id, min(f.rank) as rank from fresh f
              having count(*) between 1 and p_limit and min(f.channel_id) = max(f.channel_id) and min(f.rank) = max(f.rank)
                 and bool_and(f.rank is not null and f.flags = 0 and f.n = 1 and f.due_at >= {from} and f.due_at < {to})) one
        cross join lateral (
          select l.ctid, l.name from menzil.lane l
           where l.ctid = (select n.ctid from menzil.lane n where n.channel_id = one.channel_id and n.rank = one.rank order by n.v desc limit 1)
             and l.tail_due is null and not l.gated and not l.push and (v_only is null or l.channel_id = any (v_only))
             for update skip locked) l
    ), moved as (
      update menzil.lane l set v = l.v + 1 from lane t
       where l.ctid = t.at and coalesce(pg_sequence_last_value('menzil.withdrawn_xid'), 0) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
         and not exists (select 1 from menzil.withdrawn)
      returning t.name
    ), gone as (
      delete from menzil.line a where a.ctid = any (array(
        select b.ctid from moved m cross join fresh f cross join lateral (select b.ctid from menzil.line b where b.ctid = f.at for update skip locked offset 0) b))
      returning a.first_id, a.due_at
    ), leased as (
      insert into menzil.lease (lo_id, attempt, hi_id, flags, leased_at, unlock_at, watch_at, worker, ids)
        select min(g.first_id), 1, max(g.first_id), 0, v_now, v_unlock, v_unlock, p_worker, array_agg(g.first_id order by g.due_at, g.first_id)
          from gone g having count(*) > 0
      returning lo_id, ids
    )
    select m.id, o.name, m.content, m.payload, null::bytea, 1::bigint, m.headers, m.correlation_id, m.metadata, m.ordering_key, m.priority::integer, 0,
           m.created_at, m.scheduled_at, m.expires_at, v_unlock, l.lo_id
      from moved o cross join leased l cross join lateral unnest(l.ids) u(id) cross join lateral (select m.* from {body} m where m.id = u.id offset 0) m;
    v_ids := case when found then '{}'::bigint[] end;
$way$;
