-- Ended messages, many at once: by the time they were created, and by the transaction that ended them. The view
-- menzil.archive asks for the end of each message; these functions begin with the ends and read about four times as fast.

-- Ended messages that were created from p_from to before p_to; with p_channel only those of channels and endpoints of that
-- name, gone ones too. In no order. PostgreSQL puts the text of this function into the query that calls it, so the rows are not
-- copied: hence no SET and no SECURITY DEFINER, and only relations that a reader of the archive may read. The columns are listed
-- three times because reading them from a union would copy each row.
create or replace function menzil.archive_between(p_from timestamptz, p_to timestamptz, p_channel text default null) returns setof menzil.archived
language sql stable as $$
  with span as materialized (select s.first_id, s.last_id from menzil.archive_span(p_from, p_to, p_channel) s)
  select (null::menzil.archived).* from span s where s.first_id < 0   -- never: but the span is always asked for, and refuses bad values
  union all
  select e.id, e.status, e.channel, e.endpoint_id, e.priority, e.num_attempts, e.retry_count, e.created_at, e.scheduled_at, e.expires_at, e.first_leased_at,
         e.leased_at, e.ended_at, e.ended_xid, e.worker, e.payload, e.content, e.payload_hash, e.ordering_key, e.idempotency_key, e.correlation_id, e.headers,
         e.metadata, e.last_error, e.state, e.redrive_of, e.replay_of, e.response
    from menzil._ended_plainly e
   where e.created_at >= p_from and e.created_at < p_to and (p_channel is null or e.channel = p_channel)
     and e.lo_id > (select s.first_id from span s) - 4096 and e.lo_id <= (select s.last_id from span s)
  union all
  select e.id, e.status, e.channel, e.endpoint_id, e.priority, e.num_attempts, e.retry_count, e.created_at, e.scheduled_at, e.expires_at, e.first_leased_at,
         e.leased_at, e.ended_at, e.ended_xid, e.worker, e.payload, e.content, e.payload_hash, e.ordering_key, e.idempotency_key, e.correlation_id, e.headers,
         e.metadata, e.last_error, e.state, e.redrive_of, e.replay_of, e.response
    from menzil._ended_with_responses e
   where e.created_at >= p_from and e.created_at < p_to and (p_channel is null or e.channel = p_channel)
     and e.lo_id > (select s.first_id from span s) - 4096 and e.lo_id <= (select s.last_id from span s)
  union all
  select e.id, e.status, e.channel, e.endpoint_id, e.priority, e.num_attempts, e.retry_count, e.created_at, e.scheduled_at, e.expires_at, e.first_leased_at,
         e.leased_at, e.ended_at, e.ended_xid, e.worker, e.payload, e.content, e.payload_hash, e.ordering_key, e.idempotency_key, e.correlation_id, e.headers,
         e.metadata, e.last_error, e.state, e.redrive_of, e.replay_of, e.response
    from menzil._ended_otherwise e
   where e.created_at >= p_from and e.created_at < p_to and (p_channel is null or e.channel = p_channel)
     and e.lo_id > (select s.first_id from span s) - 4096 and e.lo_id <= (select s.last_id from span s)
$$;
