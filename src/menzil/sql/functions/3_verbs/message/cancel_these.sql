-- Cancels those of these messages that wait, as message_cancel cancels one: consumers never wait for it, however long the
-- transaction stays open. Returns the ids that were cancelled; the others are in flight, have ended, or another transaction is
-- cancelling them. p_hand_back: redriven messages give their ordering keys back to their dead letters, which are failed again.
create or replace function menzil._cancel_these(p_ids bigint[], p_hand_back boolean default false) returns bigint[]
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_found record;
  v_lane record;
  v_rest bigint[];
  v_gone bigint[] := '{}';
begin
  perform menzil._tell_withdrawal();                           -- 1. visits that begin from now on look out
  select coalesce(array_agg(m.id), '{}') as ids, array_agg(m.channel_id) as channels, array_agg(m.rank) as ranks, array_agg(m.ordering_key) as keys,
         array_agg(coalesce((select r.due_at from menzil.returned r where r.id = m.id), m.scheduled_at)) as dues into v_found
    from (select u.id from unnest(p_ids) u(id) order by u.id) u
    cross join lateral (select m.id, m.channel_id, (10 - m.priority)::smallint as rank, m.ordering_key, m.scheduled_at from menzil.message m where m.id = u.id
                           for update skip locked offset 0) m;
  -- 2. From the schedule, and from behind ordering keys. A row that is just moving is looked for below.
  with gone as (
    delete from menzil.scheduled s where s.ctid = any (array(
      select d.at from unnest(v_found.ids, v_found.dues) u(id, due_at)
        cross join lateral (select d.ctid as at from menzil.scheduled d where d.due_at = u.due_at and d.id = u.id for update skip locked offset 0) d))
    returning s.id
  )
  select coalesce(array_agg(g.id), '{}') into v_gone from gone g;
  if v_found.keys is not null and array_remove(v_found.keys, null) <> '{}' then
    with gone as (
      delete from menzil.key_queue k where k.ctid = any (array(
        select q.at from unnest(v_found.ids, v_found.channels, v_found.keys) u(id, channel_id, ordering_key)
          cross join lateral (select q.ctid as at from menzil.key_queue q
                               where q.channel_id = u.channel_id and q.ordering_key = u.ordering_key and q.waits = 1 and q.id = u.id for update skip locked offset 0) q))
      returning k.id
    )
    select v_gone || coalesce(array_agg(g.id), '{}') into v_gone from gone g;
  end if;
  -- 3. The others stand in a line or a run, or are in flight, or have ended.
  v_rest := array(select u.id from unnest(v_found.ids) u(id) where (u.id in (select g.id from unnest(v_gone) g(id))) is not true);
  if v_rest <> '{}' then
    for v_lane in
      select distinct u.channel_id, u.rank from unnest(v_found.ids, v_found.channels, v_found.ranks) u(id, channel_id, rank)
       where (u.id in (select r.id from unnest(v_rest) r(id))) is true order by 1, 2
    loop
      perform menzil._let_visits_end(v_lane.channel_id, v_lane.rank);
    end loop;
    -- First the leases: a settle that commits between the two questions shows its end in the second.
    v_rest := array(select u.id from unnest(v_rest) u(id)
                     where (u.id in (select i.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) i(id)
                                      where l.lo_id <= v_rest[cardinality(v_rest)] and l.hi_id >= v_rest[1])) is not true order by 1);
    v_rest := array(select u.id from unnest(v_rest) u(id) where (u.id in (select e.id from menzil._ends_among(v_rest) e)) is not true order by 1);
    insert into menzil.withdrawn (id) select u.id from unnest(v_rest) u(id);   -- the next visit leaves them out
    -- Short lines: a dequeue folds a bounded number of lines, and pays for each message that it takes out of a run.
    insert into menzil.line (channel_id, rank, due_at, first_id, n, flags, ids)
      select w.channel_id, w.rank, v_now, min(w.id), count(*), 64, array_agg(w.id order by w.id)
        from (select u.id, u.channel_id, u.rank, row_number() over (partition by u.channel_id, u.rank order by u.id) as n
                from unnest(v_found.ids, v_found.channels, v_found.ranks) u(id, channel_id, rank)
               where (u.id in (select r.id from unnest(v_rest) r(id))) is true) w
       group by w.channel_id, w.rank, (w.n - 1) / 4;
    v_gone := v_gone || v_rest;
  end if;
  if v_gone <> '{}' then
    if p_hand_back then
      perform menzil._hand_back(v_gone);
    end if;
    perform menzil._end_waiting(v_gone, 'cancelled', v_now);
  end if;
  perform menzil._tell_withdrawal();
  return v_gone;
end $$;
