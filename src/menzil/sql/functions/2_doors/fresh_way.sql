-- The fresh way of a dequeue, as text that install puts into message_dequeue: messages that were just sent to one idle lane of a
-- plain channel are leased from the log at once. They never become a run. One statement, as the short way, and right for the same
-- reason: a fold makes a version of the lane, so if this statement sees the version that it locked, the lines it sees are there.
-- v_line is the lane, v_proof the proof from which the log is read: a newer one may be there by now, and an older one hides no line.
-- A line that another transaction is putting aside is skipped, and found there. The bodies are read in the same statement: a snapshot
-- that shows a line shows its message. The statement finds no row in every other case.
create or replace function menzil._fresh_way() returns text
language sql immutable
return $way$
    return query
    with parent as (select from only menzil.message), fresh as materialized (   -- the parent is locked before its partition: see send
      select a.ctid as at, a.channel_id, a.rank, a.due_at, a.n, a.flags from menzil.line a where a.xid >= v_proof order by a.xid limit p_limit + 1
    ), moved as (
      update menzil.lane t set v = t.v + 1
       where t.ctid = (select l.ctid from menzil.lane l
                        where l.ctid = (select n.ctid from menzil.lane n
                                         where n.channel_id = (v_line >> 4)::integer
                                           and n.rank = (select min(f.rank) from fresh f
                                                         having count(*) between 1 and p_limit
                                                            and bool_and((f.channel_id = v_line >> 4 and f.rank = v_line & 15 and f.flags = 0 and f.n = 1
                                                                          and f.due_at >= {from} and f.due_at < {to}) is true))
                                         order by n.v desc limit 1)
                          and l.tail_due is null and not l.gated and not l.push for update skip locked)
         and case when not exists (select 1 from menzil.withdrawn) then coalesce(pg_sequence_last_value('menzil.withdrawn_xid'), 0) end
           < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
      returning t.name
    ), gone as (
      delete from menzil.line a where a.ctid = any (array(
        select b.ctid from fresh f
          cross join lateral (select b.ctid from menzil.line b where b.ctid = case when exists (select 1 from moved) then f.at end for update skip locked offset 0) b))
      returning a.first_id, a.due_at
    ), batch as (
      select min(g.first_id) as lo, max(g.first_id) as hi, array_agg(g.first_id order by g.due_at, g.first_id) as ids from gone g having count(*) > 0
    ), leased as (
      insert into menzil.lease (lo_id, attempt, hi_id, flags, leased_at, unlock_at, watch_at, worker, ids)
        select b.lo, 1, b.hi, 0, v_now, v_unlock, v_unlock, p_worker,
               case when cardinality(b.ids) > 1 and (b.hi - b.lo >= cardinality(b.ids) or b.ids <> array(select generate_series(b.lo, b.hi))) then b.ids end
          from batch b
      returning lo_id
    ), got as (   -- not in the FROM below: what stands there is locked before what stands in a WITH, and the parent comes before its partition
      select l.lo_id, m.* from leased l cross join batch b cross join lateral unnest(b.ids) u(id) cross join lateral (select m.* from {body} m where m.id = u.id offset 0) m
    )
    select m.id, (select o.name from moved o), m.content, m.payload, null::bytea, 1::bigint, m.headers, m.correlation_id, m.metadata, m.ordering_key,
           m.priority::integer, 0, m.created_at, m.scheduled_at, m.expires_at, v_unlock, m.lo_id from got m;
    v_ids := case when found then '{}'::bigint[] end;
$way$;
