-- What waits in each channel: how many, and since when the first of them could have been leased. Reads only, and touches
-- no payload. While the tables are small (p_small bytes) everything is counted. When they are large, or full of old versions that somebody's
-- snapshot keeps, each priority of each channel is counted up to p_most, from where the next dequeue would start to look.
create or replace function menzil._waiting(p_most integer, p_now timestamptz, p_small bigint default 33554432)
returns table (channel_id integer, name text, is_endpoint boolean, held boolean, count bigint, capped boolean, since_at timestamptz, scheduled bigint, keyed bigint)
language plpgsql stable
set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  if pg_total_relation_size('menzil.ready') + pg_total_relation_size('menzil.scheduled') + pg_total_relation_size('menzil.key_queue') < p_small then
    return query
      select c.id, c.name, c.protocol is not null, c.paused or coalesce(g.circuit, 0) = 2,
             coalesce(r.count, 0) + coalesce(s.count, 0) + coalesce(k.count, 0), false,
             least(r.since_at, s.since_at, (select m.due_at from menzil.message m where m.id = k.id)), coalesce(s.count, 0), coalesce(k.count, 0)
        from menzil.channel c
        left join menzil.gate g on g.channel_id = c.id
        left join (select r.channel_id, count(*), min(r.due_at) as since_at from menzil.ready r group by r.channel_id) r on r.channel_id = c.id
        left join (select s.channel_id, count(*), min(s.due_at) filter (where s.due_at <= p_now) as since_at from menzil.scheduled s group by s.channel_id) s
               on s.channel_id = c.id
        -- The first of an ordering key is among the ready ones once a dequeue has looked; until then it is here.
        left join (select k.channel_id, count(*), min(k.id) as id from menzil.key_queue k where k.place = 1 group by k.channel_id) k on k.channel_id = c.id
       where c.dropped_at is null;
    return;
  end if;
  return query
    select c.id, c.name, c.protocol is not null, c.paused or coalesce(g.circuit, 0) = 2, r.count + s.count + k.count,
           r.capped or s.count = p_most or k.count = p_most, least(r.since_at, s.since_at, k.since_at), s.count, k.count
      from menzil.channel c
      left join lateral (select g.circuit from menzil.gate g where g.channel_id = c.id offset 0) g on true
      cross join lateral (
        select sum(q.count + e.count)::bigint as count, bool_or(q.count = p_most) as capped, least(min(q.since_at), min(e.since_at)) as since_at
          from generate_series(0, 10) n(rank)
          left join lateral (select l.low_due, l.low_id, l.early_due, l.early_id from menzil.lane l
                              where l.channel_id = c.id and l.rank = n.rank offset 0) l on true
          cross join lateral (
            select count(*), min(f.due_at) as since_at
              from (select r.due_at from menzil.ready r
                     where r.channel_id = c.id and r.rank = n.rank and (r.due_at, r.id) >= (coalesce(l.low_due, '-infinity'), coalesce(l.low_id, 0))
                     order by r.due_at, r.id limit p_most) f) q
          cross join lateral (
            select count(*), min(u.due_at) as since_at from unnest(l.early_due, l.early_id) u(due_at, id)
             where exists (select 1 from menzil.ready r where r.channel_id = c.id and r.rank = n.rank and r.due_at = u.due_at and r.id = u.id offset 0)) e) r
      cross join lateral (
        select count(*), min(f.due_at) filter (where f.due_at <= p_now) as since_at
          from (select d.due_at from menzil.scheduled d where d.channel_id = c.id order by d.due_at limit p_most) f) s
      cross join lateral (
        select f.count, (select m.due_at from menzil.message m where m.id = f.id) as since_at
          from (select count(*), min(b.id) as id
                  from (select k.id from menzil.key_queue k where k.channel_id = c.id and k.place = 1 limit p_most) b) f) k
     where c.dropped_at is null;
end $$;

-- In flight, by channel. One look at a small table: it holds only what is in flight.
create or replace function menzil._in_flight() returns table (channel_id integer, count bigint)
language sql stable
set enable_seqscan = on as $$
  select l.channel_id, count(*) from menzil.lease l group by l.channel_id
$$;
