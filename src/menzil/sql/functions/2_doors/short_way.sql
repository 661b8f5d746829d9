-- The short way of a dequeue, as text that install puts into message_dequeue and message_next: one statement for what is
-- several in the long way, because a statement costs more than a row. It serves a lane of a plain channel whose first run has
-- more than enough, and finds no row in every other case.
-- p_settles: the batch p_ids ends first, if it is a whole one. Its lease is waited for before a lane is locked, so that other
-- consumers of the lane do not wait for a settle that is left open; after such a wait the times are old, and the caller tries again.
-- p_one: p_limit is 1.
-- p_named: the lane belongs to the channel v_only[1].
create or replace function menzil._short_way(p_settles boolean, p_one boolean, p_named boolean) returns text
language sql immutable
return replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
$way$ {return query}
    -- The lane whose turn it is, locked; messages from its first run; their lease; the end of the last batch.
    -- No newer snapshot is needed after the lock: every change of a lane's runs makes a version of the lane. If this statement
    -- does not see the version that it locked, the update finds no row, and the long way follows. Whether messages are being
    -- withdrawn is asked after the lock: a transaction that withdrew one and that this statement does not see has a higher id
    -- than the oldest that was open when the statement began.
    with parent as (select from only menzil.message), nothing as (   -- the parent is locked before its partition: see send
      delete from menzil.run r where false   -- takes the lock that a visit needs before the one that a read takes: no deadlock with REINDEX
    ), {ended batch} h as (
      select t.at, {ids} from ({turn}) t
        cross join lateral (
          select {slice} from menzil.run r
           where r.flags + t.gated::integer = 0 and r.channel_id = t.channel_id and r.rank = t.rank and r.due_at = t.head_due and r.first_id = t.head_id
             and r.due_at >= {from} and r.last_due < {to} and r.n > t.gone + p_limit
             and case when not exists (select 1 from menzil.withdrawn) then coalesce(pg_sequence_last_value('menzil.withdrawn_xid'), 0) end
               < pg_snapshot_xmin(pg_current_snapshot())::text::bigint offset 0) r
    ), moved as (   -- without a FROM, whose rows an update would carry along whole
      update menzil.lane l set gone = l.gone + p_limit, next_at = v_now, v = l.v + 1 where l.ctid = (select h.at from h)
      returning l.name, (select h.ids from h) as ids {plain}
    ), leased as (
      insert into menzil.lease (lo_id, attempt, hi_id, flags, leased_at, unlock_at, watch_at, worker, ids)
        select {lowest}, 1, {highest}, 0, v_now, v_unlock, v_unlock, p_worker, {leased ids} from moved h {span} returning lo_id
    )
$way$ || case when p_one then $way$
    , got as (   -- not in the FROM below: what stands there is locked before what stands in a WITH, and the parent comes before its partition
      select h.name, h.ids, m.* from moved h cross join lateral (select m.* from {body} m where m.id = h.ids[1] offset 0) m
    )
    select {count} m.name, m.ids, m.id, m.content, m.payload, m.headers, m.correlation_id, m.metadata, m.ordering_key, m.priority, m.created_at, m.scheduled_at,
           m.expires_at, 1, 0, v_unlock, m.id
      into {ended} channel, v_ids, id, content, payload, headers, correlation_id, metadata, ordering_key, priority, created_at, scheduled_at,
           expires_at, num_attempts, retry_count, unlock_at, batch
      from (values (1)) one left join got m on true;
    if v_ids is not null then
      return next;
      {that is all}
    end if;
$way$ when p_settles then $way$
    select {count} h.name, {starts}, {ends}, s.lo_id into v_ended, channel, v_ids, v_ends, batch
      from (values (1)) one left join (moved h cross join leased s) on true;
    if v_ids is not null then
      return query
        select m.id, channel, m.content, m.payload, null::bytea, 1::bigint, m.headers, m.correlation_id, m.metadata, m.ordering_key, m.priority::integer, 0,
               m.created_at, m.scheduled_at, m.expires_at, v_unlock, message_next.batch, null::text
          from (select unnest(v_ids) as lo, unnest(v_ends) as hi) r
          cross join lateral (select m.* from {body} m where m.id between r.lo and r.hi order by m.id offset 0) m;
      {that is all}
    end if;
$way$ else $way$
    , got as (   -- as above
      select h.name, s.lo_id, m.* from moved h cross join leased s cross join lateral (select unnest({starts}) as lo, unnest({ends}) as hi) r
        cross join lateral (select m.* from {body} m where m.id between r.lo and r.hi order by m.id offset 0) m
    )
    select m.id, m.name, m.content, m.payload, null::bytea, 1::bigint, m.headers, m.correlation_id, m.metadata, m.ordering_key, m.priority::integer, 0,
           m.created_at, m.scheduled_at, m.expires_at, v_unlock, m.lo_id
      from got m;
    v_ids := case when found then '{}'::bigint[] end;
$way$ end,
'{ended batch}', case when p_settles and p_one then
$way$gone as (   -- a batch of one message, as in message_complete
      delete from menzil.lease o
       where o.lo_id = p_ids[1] and o.attempt = p_num_attempts[1] and o.hi_id = o.lo_id and v_n = 1 and cardinality(p_num_attempts) = 1
         and o.channel_id is null and o.flags & 4 = 0
      returning o.attempt, o.leased_at, o.worker
    ), ended as (
      insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker)
        select p_ids[1], p_ids[1], 1, 'completed', g.attempt, g.leased_at, v_now, pg_current_xact_id(), g.worker from gone g
    ),$way$ when p_settles then
$way$gone as (
      -- As in message_complete.
      delete from menzil.lease o
       where o.lo_id = p_ids[1] and o.attempt = p_num_attempts[1] and o.hi_id = p_ids[v_n] and o.hi_id - o.lo_id = v_n - 1 and o.hi_id - o.lo_id < 4096
         and o.channel_id is null and o.flags & 4 = 0 and cardinality(p_num_attempts) = o.hi_id - o.lo_id + 1 and o.attempt = all (p_num_attempts)
         and case when o.ids is not null then o.ids = p_ids else p_ids = array(select generate_series(o.lo_id, o.hi_id)) end
      returning o.attempt, o.leased_at, o.worker
    ), ended as (
      insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker)
        select p_ids[1], p_ids[v_n], v_n, 'completed', g.attempt, g.leased_at, v_now, pg_current_xact_id(), g.worker from gone g
    ),$way$ else '' end),
'{turn}', case when p_named then
$way$select l.ctid as at, l.channel_id, l.rank, l.head_due, l.head_id, l.gone, l.gated from menzil.lane l
               where l.ctid = (select l.at from menzil.lane_name k
                                 cross join lateral (select l.ctid as at, l.next_at from menzil.lane l where l.channel_id = k.channel_id and l.rank = k.rank
                                                      order by l.v desc limit 1) l
                                where k.channel_id = v_only[1] and l.next_at <= v_now {if it ended} order by k.rank limit 1)
                 and l.next_at <= v_now for update skip locked$way$ else
$way$select l.ctid as at, l.channel_id, l.rank, l.head_due, l.head_id, l.gone, l.gated from menzil.lane l
               where l.rank = (select u.rank from menzil.rank_used u
                                where exists (select 1 from menzil.lane n where n.rank = u.rank and n.next_at >= v_floor and n.next_at <= v_now offset 0) {if it ended}
                                order by u.rank limit 1)
                 and l.next_at >= v_floor and l.next_at <= v_now order by l.next_at limit 1 for update skip locked$way$ end),
'{plain}', case when p_one then '' else ', (select h.plain from h) as plain' end),
'{ids}', case when p_one then 'r.ids' else
$way$coalesce(r.slice, array[r.first]) as ids,
             case when r.slice is null then true else r.slice = array(select generate_series(r.slice[1], r.slice[1] + p_limit - 1)) end as plain$way$ end),
-- plain: ids in a row, read with one pass over the index of the month; of a run that lists none, ids names the first only. The order of
-- a lane is that of the clock, and a sender may draw a lower id at a later time: the first and the last id do not say enough.
'{slice}', case when p_one then 'array[coalesce(r.ids[t.gone + 1], r.first_id + t.gone)] as ids' else
'r.ids[t.gone + 1 : t.gone + p_limit] as slice, r.first_id + t.gone as first' end),
'{leased ids}', case when p_one then 'null' else 'case when not h.plain then h.ids end' end),
'{lowest}', case when p_one then 'h.ids[1]' else 's.lo' end),
'{highest}', case when p_one then 'h.ids[1]' else 's.hi' end),
'{span}', case when p_one then '' else
$way$cross join lateral (select min(u.id) as lo, max(u.id) as hi
                                         from (select unnest(case when h.plain then array[h.ids[1], h.ids[1] + p_limit - 1] else h.ids end) as id) u) s$way$ end),
'{starts}', 'case when h.plain then h.ids[1:1] else h.ids end'), '{ends}', 'case when h.plain then array[h.ids[1] + p_limit - 1] else h.ids end'),
'{return query}', case when p_one or p_settles then '' else 'return query' end),
'{ended}', case when p_settles then 'v_ended,' else '' end),
'{count}', case when p_settles then 'coalesce(v_ended, (select v_n from gone)),' else '' end),
'{if it ended}', case when p_settles then 'and case when v_n = 0 or v_ended is not null or exists (select 1 from gone) then clock_timestamp() end < v_now + interval ''50 ms''' else '' end),
'{that is all}', case when p_settles then
$way$if v_n > 0 and current_setting('synchronous_commit') <> 'off' then
        return;
      end if;$way$ else '' end);
