-- How channels stand: what holds one, since when, until when and by whom; how much of its limits is used; what waits in it. Reads only.
-- The state is the one that the next dequeue will find: news of endpoints and slots that no dequeue has folded yet count.
-- Counts end at 10,001. With many channels fewer rows of each are read: menzil._lanes_counted says how many. at_least: the counts and the age
-- of the oldest are what was read; more lines of the log, or more rows, were there than are read. Of all channels 100,000 dead letters are read.
drop function if exists menzil.channel_state(text);
create or replace function menzil.channel_state(p_channel text default null) returns table (
  channel text, is_endpoint boolean, held_by text, held_since timestamptz, held_until timestamptz, held_actor text, in_flight integer, max_concurrency integer,
  rate_used integer, rate_limit integer, rate_seconds double precision, next_slot_at timestamptz, waiting bigint, waiting_by_priority jsonb, scheduled bigint,
  oldest_at timestamptz, blocked_keys bigint, dead bigint, workers integer, at_least boolean
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_id integer;
  v_most integer := 10001;
  -- Programs that call message_dequeue themselves do not register: while they alone dequeue, nothing is known of who serves a channel.
  v_by_hand boolean := menzil._dequeued_lately(v_now)
    and not exists (select 1 from menzil.worker w where w.stopped_at is null and w.heartbeat_at >= v_now - interval '30 s');
  v_long boolean := (select count(*) >= 20000 from (select 1 from menzil.line n limit 20000) n);   -- as menzil._lanes_counted reads
begin
  if p_channel is not null then
    v_id := (menzil._channel_for(p_channel)).id;
  else
    v_most := (select greatest(100, least(10001, 200000 / greatest(count(*), 1))) from menzil.channel c where c.dropped_at is null);
  end if;
  return query
    with gate as materialized (
      select g.*, r.used, r.next_at from menzil._gates_seen(case when v_id is not null then array[v_id] end, v_now) g cross join lateral menzil._room_seen(g, v_now) r
    ), flying as materialized (
      select f.* from menzil._in_flight(v_id) f
    ), lane as materialized (
      select l.channel_id, sum(l.count)::bigint as count, min(l.since_at) as since_at, jsonb_object_agg(10 - l.rank, least(l.count, 10001)) as by_priority
        from menzil._lanes_counted(v_id, v_now) l group by l.channel_id
    ), withdrawn as materialized (   -- cancelled, and still counted in their lane
      select m.channel_id, count(*) as count from (select w.id from menzil.withdrawn w limit 10000) w
        cross join lateral (select m.channel_id from menzil.message m where m.id = w.id offset 0) m group by m.channel_id
    ), letters as materialized (
      select d.channel_id, count(*) from (
        select d.channel_id from menzil.dead_letter d where d.status = 'failed' and (v_id is null or d.channel_id = v_id) order by d.channel_id limit case when v_id is null then 100000 else 10001 end) d group by 1
    ), held as materialized (
      select c.id, case when not c.enabled then 'disabled' when c.paused then 'paused' when g.circuit <> 0 then 'circuit' when g.wait_until > v_now then 'rest'
                        when g.in_flight >= g.max_concurrency then 'concurrency' when g.next_at is not null then 'rate' when c.released_at is not null then 'released' end as word
        from menzil.channel c join gate g on g.channel_id = c.id where c.dropped_at is null
    ), act as materialized (   -- of all at once, so that a locked event log is waited for once
      select a.entity_id as name, a.at, a.actor
        from (select array_agg(case h.word when 'disabled' then 'endpoint' else 'channel' end) as types, array_agg(c.name) as names,
                     array_agg(case h.word when 'disabled' then 'endpoint.disabled' else 'channel.paused' end) as kinds
                from held h join menzil.channel c on c.id = h.id where h.word in ('disabled', 'paused') having count(*) > 0) h   -- else the log is not read
        cross join lateral menzil._last_acts(h.types, h.names, h.kinds) a
    )
    select c.name, c.protocol is not null, h.word,
           case h.word when 'disabled' then a.at when 'paused' then a.at when 'circuit' then coalesce(g.opened_at, g.probe_at) when 'rest' then g.last_failure_at
                       when 'released' then c.released_at end,
           case h.word when 'circuit' then case when g.circuit = 2 then g.probe_at end when 'rest' then g.wait_until when 'rate' then g.next_at end,
           a.actor, coalesce(f.count, 0)::integer, c.max_concurrency, g.used::integer, case when c.release_interval_ms > 0 then c.release_count end,
           case when c.release_interval_ms > 0 then c.release_interval_ms / 1000.0 end::double precision, g.next_at,
           least(greatest(coalesce(l.count, 0) + k.count + s.due - coalesce(w.count, 0), 0), 10001), coalesce(l.by_priority, '{}'), s.count - s.due,
           least(l.since_at, s.since_at, y.since_at), b.count, least(coalesce(d.count, 0), 10001), case when n.count > 0 or not v_by_hand then n.count::integer end,
           v_long or s.count >= v_most or k.count >= v_most or b.count >= v_most or v_id is null and (select coalesce(sum(x.count), 0) from letters x) >= 100000
      from held h
      cross join lateral (select c.* from menzil.channel c where c.id = h.id offset 0) c
      join gate g on g.channel_id = h.id
      left join flying f on f.channel_id = h.id
      left join lane l on l.channel_id = h.id
      left join withdrawn w on w.channel_id = h.id
      left join act a on a.name = c.name and h.word in ('disabled', 'paused')
      cross join lateral (select count(*), count(*) filter (where s.due_at <= v_now) as due, min(s.due_at) filter (where s.due_at <= v_now) as since_at
                            from (select s.due_at from menzil.scheduled s where s.channel_id = h.id order by s.due_at limit v_most) s) s
      cross join lateral (select count(*) from (select 1 from menzil.key_queue k where k.channel_id = h.id and k.waits = 1 limit v_most) k) k
      -- The first message of a key could have been leased, though no dequeue has given the key a head yet. Asked of all channels, 200 rows of each.
      left join lateral (
        select min(coalesce(greatest(t.place_at, t.due_at), m.scheduled_at, m.created_at)) as since_at
          from (select min(k.id) as id   -- by key, in the order of the index: one look at each row tells whether the key has a head
                  from (select min(k.id) as id
                          from (select k.ordering_key, k.waits, k.id from menzil.key_queue k where k.channel_id = h.id order by k.ordering_key, k.waits, k.id
                                 limit case when v_id is null then 200 else v_most end) k
                         group by k.ordering_key having min(k.waits) = 1) k
                having count(*) > 0) k   -- else every partition is asked for no message
          cross join lateral (select m.id, m.scheduled_at, m.created_at from menzil.message m where m.id = k.id offset 0) m
          left join lateral (select t.place_at, t.due_at from menzil.returned t where t.id = m.id offset 0) t on true) y on true
      cross join lateral (select count(*) from (select 1 from menzil.dead_letter d where d.channel_id = h.id and d.blocks_key limit v_most) d) b
      left join letters d on d.channel_id = h.id
      cross join lateral (select count(*) from menzil.worker k where menzil._serves(k, c.name, c.protocol is not null, v_now)) n
     order by c.name;
end $$;
