-- Ended messages for our own readers of many: menzil.archive asks for the end of each message, these begin with the ends.
-- A reader gives a span of ids, or of transactions, and gets the rows in one pass. lo_id is the least id that ended together
-- with the message; no end spans more than 4096 ids, so ids from a on have lo_id > a - 4096.

-- Which messages ended, by transaction.
create or replace view menzil._ends as
select d.ended_xid, d.lo_id, unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) as id from menzil.done d;

-- What messages share that completed together in the first try: sent once, and not with each of them.
create or replace view menzil._ends_alike as
select d.lo_id, d.status, d.attempt as num_attempts, 0 as retry_count, d.leased_at as first_leased_at, d.leased_at, d.ended_at, d.ended_xid, d.worker
  from menzil.done d where d.attempt = 1 and d.status = 'completed';

-- What a channel is called, a dropped one too: sent once, and not with each message. Where nobody asks for the name, PostgreSQL leaves the
-- outer join of the two views below out.
create or replace view menzil._channel_names as
select c.id, c.name from menzil.channel c;

-- Messages that ended as most do: in the first try, together with others whose ids have no gap, and without a response. One look
-- at the messages for each end, and nothing else to look for. The WITH in the lateral query is never read: it keeps the planner
-- from beginning with the messages, and unlike OFFSET 0 it lets conditions on messages through.
create or replace view menzil._ended_plainly as
select m.id, d.status, c.name as channel, m.channel_id as endpoint_id, m.priority, d.attempt as num_attempts, 0 as retry_count,
       m.created_at, m.scheduled_at, m.expires_at, d.leased_at as first_leased_at, d.leased_at, d.ended_at, d.ended_xid,
       d.worker, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata,
       null::text as last_error, null::bytea as state, m.redrive_of, m.replay_of, null::jsonb as response, d.lo_id
  from menzil.done d
  cross join lateral (with ends_first as (select 1) select m.* from menzil.message m where m.id between d.lo_id and d.hi_id) m
  left join menzil.channel c on c.id = m.channel_id
 where d.ids is null and d.responses is null and d.attempt = 1 and d.status = 'completed';

-- Messages that ended so and have a response each, as webhooks do, with few gaps between their ids. One look at the messages for each
-- end here, too: the second WITH keeps the planner from looking for each message by its id.
create or replace view menzil._ended_with_responses as
select m.id, d.status, c.name as channel, m.channel_id as endpoint_id, m.priority, d.attempt as num_attempts, 0 as retry_count,
       m.created_at, m.scheduled_at, m.expires_at, d.leased_at as first_leased_at, d.leased_at, d.ended_at, d.ended_xid,
       d.worker, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata,
       null::text as last_error, null::bytea as state, m.redrive_of, m.replay_of, m.response, d.lo_id
  from menzil.done d
  cross join lateral (
    with ends_first as (select 1)
    select m.*, e.response
      from (with in_one_look as (select 1) select m.* from menzil.message m where m.id between d.lo_id and d.hi_id) m
      join (select unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) as id, unnest(d.responses) as response) e on e.id = m.id
  ) m
  left join menzil.channel c on c.id = m.channel_id
 where d.responses is not null and d.hi_id - d.lo_id < 4 * d.n and d.attempt = 1 and d.status = 'completed';

-- Messages that ended otherwise. Only messages that came back or failed have a row in returned. The WITH keeps the planner from reading a whole
-- month for each end: of a month without statistics, such as a restored one, it believes that thousands of messages have the same id.
create or replace view menzil._ended_otherwise as
select m.id, d.status, c.name as channel, m.channel_id as endpoint_id, m.priority, d.attempt as num_attempts, coalesce(r.retry_count, 0) as retry_count,
       m.created_at, m.scheduled_at, m.expires_at, coalesce(r.first_leased_at, d.leased_at) as first_leased_at, d.leased_at, d.ended_at, d.ended_xid,
       d.worker, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, r.last_error, r.state,
       m.redrive_of, m.replay_of, m.response, d.lo_id
  from menzil.done d
  cross join lateral (
    select m.*, null::jsonb as response from menzil.message m where d.responses is null and d.ids is null and m.id between d.lo_id and d.hi_id
    union all
    select m.*, null::jsonb as response from menzil.message m where d.responses is null and d.ids is not null and m.id = any (d.ids)
    union all
    select m.*, e.response
      from (select unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) as id, unnest(d.responses) as response
             where d.responses is not null) e
     cross join lateral (with ends_first as (select 1) select m.* from menzil.message m where m.id = e.id) m
  ) m
  join menzil.channel c on c.id = m.channel_id
  left join lateral (select r.* from menzil.returned r where r.id = m.id and (d.attempt > 1 or d.status <> 'completed') offset 0) r on true
 where d.attempt <> 1 or d.status <> 'completed' or (d.responses is null and d.ids is not null)
    or (d.responses is not null and d.hi_id - d.lo_id >= 4 * d.n);

create or replace view menzil._ended as
select * from menzil._ended_plainly union all select * from menzil._ended_with_responses union all select * from menzil._ended_otherwise;

-- For messages that ended one by one: the ends and the messages are joined.
create or replace view menzil._ended_singly as
select m.id, d.status, c.name as channel, m.channel_id as endpoint_id, m.priority, d.attempt as num_attempts, coalesce(r.retry_count, 0) as retry_count,
       m.created_at, m.scheduled_at, m.expires_at, coalesce(r.first_leased_at, d.leased_at) as first_leased_at, d.leased_at, d.ended_at, d.ended_xid,
       d.worker, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, r.last_error, r.state,
       m.redrive_of, m.replay_of, d.response, d.lo_id
  from (select d.status, d.attempt, d.leased_at, d.ended_at, d.ended_xid, d.worker, d.lo_id,
               unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) as id, unnest(d.responses) as response
          from menzil.done d) d
  join menzil.message m on m.id = d.id
  join menzil.channel c on c.id = m.channel_id
  left join lateral (select r.* from menzil.returned r where r.id = m.id and (d.attempt > 1 or d.status <> 'completed') offset 0) r on true;
