-- Whether live messages have a place: in a run, in a line, in a lease, on the schedule, or behind their ordering key. A message
-- without one is never leased. A message moves from place to place inside one transaction, and this check reads with one
-- snapshot: it sees every live message in exactly one place.
-- Some are looked at: of the newest 500 messages, the oldest 250 and up to 250 at random, those that have not ended. At random
-- means random pages: some ten of all months together. OFFSET 0 keeps the planner from reading all that waits for a few messages. Places that an index finds come first, among them the lines of the
-- transactions that sent the messages, then the whole log, and only for messages that are still missing a look through everything. Returns how many were seen, how many have no place, and the first.
create or replace function menzil._check_places(out seen integer, out lost integer, out first bigint)
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_percent real := (select least(100, 1000 / greatest(sum(pg_relation_size(i.inhrelid)) / 8192, 1))::real
                       from pg_inherits i where i.inhparent = 'menzil.message'::regclass);
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_senders xid8[];
  v_ids bigint[];
begin
  v_ids := array(
    select distinct m.id
      from ((select m.id from menzil.message m order by m.id desc limit 500)
            union all (select m.id from menzil.message m order by m.id limit 250)
            union all (select m.id from menzil.message m tablesample system (v_percent) limit 250)) m
     where not exists (select 1 from menzil.done d where d.lo_id > m.id - 4096 and d.lo_id <= m.id and d.hi_id >= m.id
                          and (d.ids is null or m.id = any (d.ids))));
  seen := cardinality(v_ids);
  v_ids := array(
    select u.id from unnest(v_ids) u(id)
      cross join lateral (select m.channel_id, (10 - m.priority)::smallint as rank, m.ordering_key, coalesce(m.scheduled_at, m.created_at) as first_due
                            from menzil.message m where m.id = u.id offset 0) m
      left join lateral (select t.place_at, t.due_at from menzil.returned t where t.id = u.id offset 0) t on true
      left join lateral (select l.head_due, l.head_id, l.gone from menzil.lane l where l.channel_id = m.channel_id and l.rank = m.rank order by l.v desc limit 1) l on true
     where not exists (select 1 from menzil.lease b where b.lo_id > u.id - 4096 and b.lo_id <= u.id and b.hi_id >= u.id and (b.ids is null or u.id = any (b.ids)) offset 0)
       and not exists (select 1 from menzil.scheduled s where s.due_at = coalesce(t.due_at, m.first_due) and s.id = u.id offset 0)
       and not exists (select 1 from menzil.key_queue k where k.channel_id = m.channel_id and k.ordering_key = m.ordering_key and k.waits = 1 and k.id = u.id offset 0)
       and not exists (select 1 from (select r.due_at, r.first_id, r.n, r.ids from menzil.run r
                                       where r.channel_id = m.channel_id and r.rank = m.rank
                                         and (r.due_at, r.first_id) <= (coalesce(t.place_at, m.first_due), u.id)
                                       order by r.due_at desc, r.first_id desc limit 4) r
                        where case when r.ids is null then u.id - r.first_id + 1 between 1 and r.n else u.id = any (r.ids) end
                          and coalesce(array_position(r.ids, u.id), u.id - r.first_id + 1)
                              > case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end)
     order by u.id);
  if v_ids <> '{}' then
    -- The line of a message has the id of the transaction that sent it, unless that was a savepoint. xmin is the lower half of it.
    v_senders := array(
      select distinct (case when x.id > v_next then x.id - 4294967296 else x.id end)::text::xid8
        from unnest(v_ids) u(id)
        cross join lateral (select v_next - (v_next & 4294967295) + m.xmin::text::bigint as id from menzil.message m where m.id = u.id limit 1 offset 0) x
       where x.id <= v_next or x.id > 4294967296);
    v_ids := array(
      select u.id from unnest(v_ids) u(id)
      except
      -- A sender of many single messages left a line for each: those are not made a list of one first.
      (select n.first_id from unnest(v_senders) s(xid)
         cross join lateral (select n.first_id from menzil.line n where n.xid = s.xid and n.rank is not null and n.flags & 64 = 0 and n.n = 1 offset 0) n
       union all
       select h.id from unnest(v_senders) s(xid)
         cross join lateral (select n.first_id, n.n, n.ids from menzil.line n where n.xid = s.xid and n.rank is not null and n.flags & 64 = 0 and n.n > 1 offset 0) n
         cross join lateral unnest(coalesce(n.ids, array(select generate_series(n.first_id, n.first_id + n.n - 1)))) h(id))
      order by 1);
  end if;
  if v_ids <> '{}' then
    v_ids := array(
      select u.id from unnest(v_ids) u(id)
      except
      (select n.first_id from menzil.line n where n.rank is not null and n.flags & 64 = 0 and n.n = 1
       union all
       select h.id from (select n.* from menzil.line n where n.n > 1 union all select a.* from menzil.aside a) n
         cross join lateral unnest(coalesce(n.ids, array(select generate_series(n.first_id, n.first_id + n.n - 1)))) h(id)
        where n.rank is not null and n.flags & 64 = 0)
      order by 1);
  end if;
  if v_ids <> '{}' then
    v_ids := array(
      select u.id from unnest(v_ids) u(id)
      except
      (select h.id from menzil.lease b cross join lateral unnest(coalesce(b.ids, array(select generate_series(b.lo_id, b.hi_id)))) h(id)
       union all select s.id from menzil.scheduled s
       union all select k.id from menzil.key_queue k where k.waits = 1
       union all
       select h.id from menzil.run r
         left join lateral (select l.head_due, l.head_id, l.gone from menzil.lane l where l.channel_id = r.channel_id and l.rank = r.rank order by l.v desc limit 1) l on true
         cross join lateral unnest(coalesce(r.ids, array(select generate_series(r.first_id, r.first_id + r.n - 1)))) with ordinality h(id, n)
        where h.n > case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end)
      order by 1);
  end if;
  lost := cardinality(v_ids);
  first := v_ids[1];
end $$;
