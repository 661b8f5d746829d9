-- What waits in each channel: how many, and since when the first of them could have been leased. Reads only, and touches no
-- payload. Runs and lines know how many messages they hold, so a deep queue is counted by its runs. Of lines that no dequeue has folded
-- yet at most 20,000 are read, or 50,000 where one channel is asked: beyond that a count is a lower bound. Messages on the
-- schedule and behind ordering keys have a row each: while those tables are small (p_small bytes) every row is counted, when they are
-- large each channel is counted up to p_most rows. p_channel_id: of this channel only.
create or replace function menzil._waiting(p_most integer, p_now timestamptz, p_small bigint default 33554432, p_channel_id integer default null)
returns table (
  channel_id integer, name text, is_endpoint boolean, held boolean, count bigint, capped boolean, since_at timestamptz, scheduled bigint, keyed bigint
)
language plpgsql stable set enable_seqscan = off set enable_sort = off set jit = off as $$
#variable_conflict use_column
declare
  v_lines constant integer := case when p_channel_id is null then 20000 else 50000 end;
  v_large boolean := p_channel_id is not null
    or pg_total_relation_size('menzil.scheduled') + pg_total_relation_size('menzil.key_queue') >= p_small;
begin
  return query
    -- By lane: the sum of its runs; of the first run a part may be leased already. The position of a message that came back is
    -- older than its last due time. So of runs that are not plain, or leased in part, some messages are asked since when they
    -- are due: the first twenty of the first ten such runs. A lane without such a run is not read twice.
    with lane as materialized (
      select l.channel_id, sum(q.count)::bigint as count, bool_or(q.runs = p_most) as capped, min(least(q.since_at, o.since_at)) as since_at
        from menzil.lane l
        cross join lateral (
          select sum(r.n - r.gone)::bigint as count, count(*) as runs, min(r.due_at) filter (where r.plain) as since_at, bool_or(not r.plain) as mixed
            from menzil._runs_ahead(l, p_most) r) q
        left join lateral (
          select min(coalesce(greatest(t.place_at, t.due_at), m.scheduled_at, m.created_at)) as since_at
            from (select r.ids from menzil._runs_ahead(l, p_most) r where q.mixed and not r.plain limit 10) r
            cross join lateral unnest(r.ids) u(id)
            cross join lateral (select m.scheduled_at, m.created_at from menzil.message m where m.id = u.id offset 0) m
            left join lateral (select t.place_at, t.due_at from menzil.returned t where t.id = u.id offset 0) t on true) o on true
       where l.tail_due is not null and (p_channel_id is null or l.channel_id = p_channel_id) group by l.channel_id
    ), line as materialized (   -- by channel in one pass; lines: how many were read, also those that hold no message
      select n.channel_id, count(*) as lines, sum(n.n) filter (where n.holds) as count,
             min(case when n.flags & 1 <> 0 then greatest(n.due_at, (select t.due_at from menzil.returned t where t.id = n.first_id)) else n.due_at end) filter (where n.holds) as since_at
        from (select n.channel_id, n.first_id, n.n, n.flags, n.due_at,
                     n.rank is not null and n.flags & 64 = 0 and (p_channel_id is null or n.channel_id = p_channel_id) as holds
                from (select n.channel_id, n.rank, n.first_id, n.n, n.flags, n.due_at from menzil.aside n
                      union all (select n.channel_id, n.rank, n.first_id, n.n, n.flags, n.due_at from menzil.line n limit v_lines)) n) n
       group by n.channel_id
    ), later as materialized (
      -- Messages on the schedule, and messages behind their ordering key. Of a key whose first message may be leased, is leased or
      -- waits for its retry, no other message could have been leased.
      select q.channel_id, q.scheduled, q.due, q.keyed, q.capped, least(q.since_at, (
               select coalesce((select greatest(t.place_at, t.due_at) from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at)
                 from menzil.message m where m.id = q.key_id)) as since_at
        from (
          select coalesce(s.channel_id, k.channel_id) as channel_id, coalesce(s.count - s.due, 0) as scheduled, coalesce(s.due, 0) as due, coalesce(k.count, 0) as keyed, false as capped,
                 s.since_at, k.id as key_id
            from (select s.channel_id, count(*), count(*) filter (where s.due_at <= p_now) as due, min(s.due_at) filter (where s.due_at <= p_now) as since_at
                    from menzil.scheduled s where not v_large group by s.channel_id) s
            -- By key, in the order of the index: one look at each row tells whether the key has a head.
            full join (select k.channel_id, sum(k.count)::bigint as count, min(k.id) filter (where not k.headed) as id
                         from (select k.channel_id, count(*) filter (where k.waits = 1) as count, min(k.id) filter (where k.waits = 1) as id, bool_or(k.waits = 0) as headed
                                 from menzil.key_queue k where not v_large group by k.channel_id, k.ordering_key) k
                        group by k.channel_id having sum(k.count) > 0) k on k.channel_id = s.channel_id
          union all
          select c.id, s.count - s.due, s.due, k.count, s.count = p_most or k.looked = p_most, s.since_at, k.id
            from menzil.channel c
            cross join lateral (
              select count(*), count(*) filter (where f.due_at <= p_now) as due, min(f.due_at) filter (where f.due_at <= p_now) as since_at
                from (select s.due_at from menzil.scheduled s where s.channel_id = c.id order by s.due_at limit p_most) f) s
            cross join lateral (
              select coalesce(sum(k.count), 0)::bigint as count, coalesce(sum(k.looked), 0) as looked, min(k.id) filter (where not k.headed) as id
                from (select count(*) as looked, count(*) filter (where k.waits = 1) as count, min(k.id) filter (where k.waits = 1) as id, bool_or(k.waits = 0) as headed
                        from (select k.ordering_key, k.waits, k.id from menzil.key_queue k where k.channel_id = c.id order by k.ordering_key, k.waits, k.id limit p_most) k
                       group by k.ordering_key) k) k
           where v_large and c.dropped_at is null and (p_channel_id is null or c.id = p_channel_id) and s.count + k.count > 0) q
    ), withdrawn as materialized (   -- cancelled, and still counted in their run or line
      select m.channel_id, count(*) as count from (select w.id from menzil.withdrawn w limit 100000) w
        cross join lateral (select m.channel_id from menzil.message m where m.id = w.id offset 0) m group by m.channel_id
    )
    select q.id, q.name, q.is_endpoint, q.held, greatest(q.count, 0)::bigint, q.capped, case when q.count > 0 then q.since_at end, q.scheduled, q.keyed
      from (select c.id, c.name, c.protocol is not null as is_endpoint,
                   coalesce(g.paused or g.circuit <> 0 or g.wait_until > p_now, c.paused) as held,
                   coalesce(l.count, 0) + coalesce(n.count, 0) + coalesce(s.scheduled + s.due + s.keyed, 0) - coalesce(w.count, 0) as count,
                   coalesce(l.capped, false) or coalesce(s.capped, false) or o.cut as capped,
                   least(l.since_at, n.since_at, s.since_at) as since_at, coalesce(s.scheduled, 0) as scheduled, coalesce(s.keyed, 0) as keyed
              from menzil.channel c
              left join menzil.gate g on g.channel_id = c.id
              left join lane l on l.channel_id = c.id
              left join line n on n.channel_id = c.id
              left join later s on s.channel_id = c.id
              left join withdrawn w on w.channel_id = c.id
             cross join (select coalesce(sum(x.lines), 0) >= v_lines as cut from line x) o   -- of a channel no line at all may have been read
             where c.dropped_at is null and (p_channel_id is null or c.id = p_channel_id)) q;
end $$;
