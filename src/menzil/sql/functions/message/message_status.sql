-- Where a message is now, live or ended.
create or replace function menzil.message_status(p_id bigint) returns table (
  id bigint, status text, channel text, num_attempts bigint, retry_count integer, last_error text, created_at timestamptz, scheduled_at timestamptz,
  next_retry_at timestamptz, unlock_at timestamptz, expires_at timestamptz, ended_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  perform menzil._check_known(p_id);
  return query
    select m.id, case when l.id is null then 'pending' else 'processing' end, c.name, coalesce(l.attempt, m.attempts), m.retry_count, m.last_error,
           m.created_at, m.scheduled_at, case when l.id is null then m.next_retry_at end, l.unlock_at, m.expires_at, null::timestamptz
      from menzil.message m join menzil.channel c on c.id = m.channel_id left join menzil.lease l on l.id = m.id where m.id = p_id
    union all
    select a.id, a.status, a.channel, a.num_attempts, a.retry_count, a.last_error, a.created_at, a.scheduled_at, null, null, a.expires_at, a.ended_at
      from menzil.archive a where a.id = p_id
    limit 1;
end $$;

-- The next messages of a channel in the order they would be leased, without leasing them.
create or replace function menzil.message_peek(p_channel text, p_limit integer default 10) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_channel);
  v_now timestamptz := clock_timestamp();
begin
  perform menzil._check_limit(p_limit, 10000);
  return query
    with due as materialized (       -- and not yet moved by a dequeue
      select s.rank, s.due_at, s.id, s.ordering_key, s.ordering_key is null or s.holds_key as goes from menzil.scheduled s
       where s.channel_id = v_channel.id and s.due_at <= v_now and (s.expires_at > v_now or s.expires_at is null)
       order by s.due_at limit p_limit
    ), keyed as materialized (       -- who may become the first of a key at the next dequeue
      select d.rank, d.due_at, d.id, d.ordering_key from due d where not d.goes
      union all
      select m.rank, m.due_at, m.id, a.ordering_key
        from (select distinct a.ordering_key from menzil.arrival a where a.channel_id = v_channel.id and a.ordering_key is not null) a
        cross join lateral (select k.id from menzil.key_queue k where k.channel_id = v_channel.id and k.ordering_key = a.ordering_key and k.place = 1
                             order by k.id limit 1) k
        cross join lateral (select m.* from menzil.message m where m.id = k.id offset 0) m
       where m.expires_at > v_now or m.expires_at is null
    )
    select m.id, v_channel.name, m.content, m.payload, m.state, m.attempts, m.headers, m.correlation_id, m.metadata, m.ordering_key,
           10 - m.rank, m.retry_count, m.created_at, m.scheduled_at, m.expires_at
      from ((select r.rank, r.due_at, r.id from menzil.ready r
              where r.channel_id = v_channel.id and (r.expires_at > v_now or r.expires_at is null) order by r.rank, r.due_at, r.id limit p_limit)
            union
            (select d.rank, d.due_at, d.id from due d where d.goes)
            union
            (select distinct on (y.ordering_key) y.rank, y.due_at, y.id from keyed y
              where not exists (select 1 from menzil.key_queue k
                                 where k.channel_id = v_channel.id and k.ordering_key = y.ordering_key and k.place = 0)
              order by y.ordering_key, y.id)) q
      cross join lateral (select m.* from menzil.message m where m.id = q.id offset 0) m
     order by q.rank, q.due_at, q.id limit p_limit;
end $$;
