-- Live messages: pending or processing. Where a message is tells its state: in a run of its lane, in a line of the log, on the
-- schedule, behind its ordering key, or in a lease. The channel is joined in each part, so that a filter by channel reads only
-- the runs, schedules and keys of that channel. A message is looked for by a range that holds its id alone, in order and with LIMIT 1: then
-- the planner expects one row and uses the index of ids, also of a month without statistics or with misleading ones. Constants have
-- their names in every part: after a restore PostgreSQL would print names of its own, and the drift check would take the view for changed.
create or replace view menzil.queue as
select q.id, q.status, q.channel,
       case when q.protocol is not null then q.channel_id end as endpoint_id,
       case when q.protocol is not null then q.channel end as endpoint,
       m.payload, m.content, m.payload_hash, m.priority::integer as priority,
       m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, m.scheduled_at,
       case when q.status = 'pending' then r.due_at end as next_retry_at, m.expires_at, m.created_at,
       q.leased_at as processing_started_at, q.unlock_at, coalesce(q.attempt, r.attempts, 0) as num_attempts,
       coalesce(r.retry_count, 0) as retry_count, r.last_error, r.state, q.worker, m.redrive_of, m.replay_of
  from (
    select u.id, c.id as channel_id, c.name as channel, c.protocol, 'pending' as status, null::timestamptz as leased_at, null::timestamptz as unlock_at,
           null::bigint as attempt, null::text as worker
      from menzil.channel c
      join menzil.run r on r.channel_id = c.id
      -- Of the run at the head of its lane the first messages may be leased already.
      left join menzil.lane l on l.channel_id = c.id and l.rank = r.rank and l.head_due = r.due_at and l.head_id = r.first_id and l.gone > 0
      cross join lateral unnest(case when l.gone is null and r.ids is not null then r.ids
                                     when r.ids is not null then r.ids[l.gone + 1 :]
                                     else array(select generate_series(r.first_id + coalesce(l.gone, 0), r.first_id + r.n - 1)) end) u(id)
     where not exists (select 1 from menzil.withdrawn w where w.id = u.id)
    union all
    select u.id, c.id, c.name, c.protocol, 'pending' as status, null::timestamptz as leased_at, null::timestamptz as unlock_at,
           null::bigint as attempt, null::text as worker
      from menzil.channel c
      join (select n.channel_id, n.ids, n.first_id, n.n from menzil.line n where n.rank is not null and n.flags & 64 = 0
            union all select a.channel_id, a.ids, a.first_id, a.n from menzil.aside a where a.rank is not null and a.flags & 64 = 0) l on l.channel_id = c.id
      cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.first_id, l.first_id + l.n - 1)))) u(id)
     where not exists (select 1 from menzil.withdrawn w where w.id = u.id)
    union all
    select s.id, c.id, c.name, c.protocol, 'pending' as status, null::timestamptz as leased_at, null::timestamptz as unlock_at,
           null::bigint as attempt, null::text as worker
      from menzil.channel c join menzil.scheduled s on s.channel_id = c.id
     where not exists (select 1 from menzil.withdrawn w where w.id = s.id)
    union all
    select k.id, c.id, c.name, c.protocol, 'pending' as status, null::timestamptz as leased_at, null::timestamptz as unlock_at,
           null::bigint as attempt, null::text as worker
      from menzil.channel c join menzil.key_queue k on k.channel_id = c.id and k.waits = 1
    union all
    -- A lease may hold messages of several channels.
    select m.id, c.id, c.name, c.protocol, 'processing' as status, l.leased_at, l.unlock_at, l.attempt, l.worker
      from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id)
      cross join lateral (select m.id, m.channel_id from menzil.message m where m.id between u.id and u.id order by m.id limit 1) m
      join menzil.channel c on c.id = m.channel_id
  ) q
  cross join lateral (select m.* from menzil.message m where m.id between q.id and q.id order by m.id limit 1) m
  left join menzil.returned r on r.id = q.id;
