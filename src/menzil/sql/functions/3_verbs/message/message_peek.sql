-- The next messages of a channel in the order they would be leased, without leasing them. Reads only: lines that no dequeue
-- has folded yet are looked at beside the runs. At least p_limit messages of each kind are looked at: in runs, in lines, on the
-- schedule and due, and the first of each ordering key that needs a head. Of the log the first 100,000 lines are read.
create or replace function menzil.message_peek(p_channel text, p_limit integer default 10) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_channel);
  v_now timestamptz := clock_timestamp();
begin
  perform menzil._check_limit(p_limit, 10000);
  return query
    with lane as materialized (
      select l.* from menzil.lane_name k
        cross join lateral (select l.rank, l.gone, l.head_due, l.head_id from menzil.lane l
                             where l.channel_id = k.channel_id and l.rank = k.rank order by l.v desc limit 1) l
       where k.channel_id = v_channel.id
    ), waiting as materialized (
      (select u.id from lane l
         cross join lateral (select r.ids, r.first_id, r.n, case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end as gone from menzil.run r
                              where r.channel_id = v_channel.id and r.rank = l.rank and (r.due_at, r.first_id) >= (l.head_due, l.head_id)
                              order by r.due_at, r.first_id limit p_limit) r
         cross join lateral unnest(case when r.ids is not null then r.ids[r.gone + 1 : r.gone + p_limit] else array(
           select generate_series(r.first_id + r.gone, least(r.first_id + r.n - 1, r.first_id + r.gone + p_limit))) end) u(id))
      union
      select u.id from (select n.* from (select n.* from menzil.line n order by n.xid limit 100000) n
                         where n.channel_id = v_channel.id and n.rank is not null and n.flags & 64 = 0
                        union all select a.* from menzil.aside a where a.channel_id = v_channel.id and a.rank is not null and a.flags & 64 = 0) n
        cross join lateral unnest(coalesce(n.ids[: p_limit], array(select generate_series(n.first_id, n.first_id + least(n.n, p_limit) - 1)))) u(id)
      union
      (select s.id from menzil.scheduled s where s.channel_id = v_channel.id and s.due_at <= v_now and (s.ordering_key is null or s.holds_key)
        order by s.due_at limit p_limit)
      union
      (select h.id from (select distinct k.ordering_key from menzil.key_queue k where k.channel_id = v_channel.id
                         union select s.ordering_key from menzil.scheduled s
                                where s.channel_id = v_channel.id and s.due_at <= v_now and not s.holds_key and s.ordering_key is not null) y
         cross join lateral (select q.id from (
             select k.waits, k.id from menzil.key_queue k where k.channel_id = v_channel.id and k.ordering_key = y.ordering_key
             union all select 1, s.id from menzil.scheduled s
                        where s.channel_id = v_channel.id and s.ordering_key = y.ordering_key and s.due_at <= v_now and not s.holds_key) q
           where not exists (select 1 from menzil.key_queue h where h.channel_id = v_channel.id and h.ordering_key = y.ordering_key and h.waits = 0)
           order by q.waits, q.id limit 1) h limit p_limit)
    )
    select m.id, v_channel.name, m.content, m.payload, r.state, coalesce(r.attempts, 0), m.headers, m.correlation_id, m.metadata, m.ordering_key,
           m.priority::integer, coalesce(r.retry_count, 0), m.created_at, m.scheduled_at, m.expires_at
      from waiting w cross join lateral (select m.* from menzil.message m where m.id = w.id offset 0) m
      left join lateral (select r.* from menzil.returned r where r.id = w.id offset 0) r on true
     where (m.expires_at > v_now or m.expires_at is null) and not exists (select 1 from menzil.withdrawn x where x.id = m.id)
     order by m.priority desc, coalesce(r.place_at, m.scheduled_at, m.created_at), m.id limit p_limit;
end $$;
