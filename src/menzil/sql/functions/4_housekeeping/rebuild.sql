-- Gives every live message its place again: for an operator, after a restore or when health_check misses places. A message is
-- live when it is in message and not in done. What is in flight (lease) or waits for its time (scheduled) stays where it is;
-- every other live message goes into a run of its lane or behind its ordering key. Lines, runs, lanes, tombstones, proofs and
-- registers are made anew; only news of endpoints is kept from the log. Messages that are being sent meanwhile are not touched.
-- Ends and lines of the event log that a restore brought from another cluster get a transaction id of this one, so that the change
-- feed has an order again.
-- Senders and consumers wait until the transaction ends. Returns how many messages got a place.
create or replace function menzil.rebuild() returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set lock_timeout = '200ms' set work_mem = '256MB' set jit = off as $$
declare
  v_before pg_snapshot;
  v_until timestamptz := clock_timestamp() + interval '5 s';
  v_now timestamptz;
  v_placed bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- The statements after the locks must see what was committed before them.
    raise exception using errcode = '25001', message = 'The queue is rebuilt in READ COMMITTED transactions only.',
      hint = 'Call it in a transaction of its own: begin isolation level read committed.';
  end if;
  -- Locks every table that says where messages are, all or none: a try that meets another transaction lets go, so that it never
  -- waits in a circle, and begins again. A transaction that stays open for five seconds makes the rebuild give up.
  loop
    begin
      -- EXCLUSIVE where consumers lock rows before they write.
      lock table menzil.lane, menzil.gate, menzil.lease, menzil.scheduled in exclusive mode;
      lock table menzil.line, menzil.aside, menzil.look, menzil.tally, menzil.run, menzil.lane_name, menzil.rank_used, menzil.done, menzil.returned,
        menzil.key_queue, menzil.withdrawn, menzil.expiring, menzil.size_change in share row exclusive mode;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() > v_until then
        raise exception using errcode = '55P03', message = 'The queue cannot be locked: another transaction uses it and stays open.',
          hint = 'End long transactions (menzil.health_check() names the oldest), stop workers, and call menzil.rebuild() again.';
      end if;
    end;
    perform pg_sleep(0.05);
  end loop;
  v_now := clock_timestamp();
  delete from menzil.run;
  delete from menzil.lane;
  delete from menzil.lane_name;
  delete from menzil.rank_used;
  delete from menzil.look;
  delete from menzil.withdrawn;
  with gone as (
    delete from menzil.aside a returning a.*
  )
  insert into menzil.line select g.* from gone g where g.news is not null;
  delete from menzil.line n where n.news is null;
  update menzil.line n set xid = pg_current_xact_id();   -- the ids of another cluster mean nothing here
  v_before := pg_current_snapshot();
  perform menzil._tally(false, true);   -- adopted ends come before it, and are not added up
  perform menzil._adopt_history(v_before);
  -- Live messages and their position in the lane. Ends without gaps are subtracted as ranges of ids, the others one by one.
  create temp table menzil_live on commit drop as
    with gap as materialized (
      select lower(g.g) as lo, coalesce(upper(g.g), 9223372036854775807) as hi
        from (select unnest(int8multirange(int8range(null, null)) - coalesce(range_agg(int8range(d.lo_id, d.hi_id, '[]')), '{}'::int8multirange)) as g
                from menzil.done d where d.ids is null) g
    ), single as materialized (
      select unnest(d.ids) as id from menzil.done d where d.ids is not null
    )
    select m.id, m.channel_id, (10 - m.priority)::smallint as rank, coalesce(r.place_at, m.scheduled_at, m.created_at) as place_at,
           coalesce(r.due_at, m.scheduled_at) as due_at,
           (case when r.id is not null or m.scheduled_at is not null then 1 else 0 end | case when m.expires_at is not null then 2 else 0 end
            | case when m.ordering_key is not null then 4 else 0 end)::smallint as flags,
           m.ordering_key, m.created_at, m.expires_at, r.id is not null and r.attempts > 0 as came_back
      from gap g join menzil.message m on m.id >= coalesce(g.lo, -9223372036854775808) and m.id < g.hi
      left join menzil.returned r on r.id = m.id
     where not exists (select 1 from single s where s.id = m.id) and exists (select 1 from menzil.channel c where c.id = m.channel_id);
  analyze pg_temp.menzil_live;
  perform menzil._rebuild_leases(v_now);
  v_placed := menzil._rebuild_waiting(v_now);
  perform menzil._raise_ids();
  -- The depth is what is live, and everything else is looked for anew.
  perform setval('menzil.turn_mark', 0), setval('menzil.deep_at', 0), setval('menzil.swept_at', 0), setval('menzil.withdrawn_at', 0),
          setval('menzil.withdrawn_xid', 0), setval('menzil.counted_at', 0), setval('menzil.counted_xid', 0), setval('menzil.counted_ids', 0);
  if (select o.n from menzil._open_senders() o) = 0 then
    update menzil.tally t set writer = '{}';   -- counted anew; how many have ended stays known
  end if;
  perform menzil._tally(true);
  perform menzil._count_size(c.id) from menzil.channel c where c.max_size is not null;
  drop table pg_temp.menzil_live;
  perform menzil._event('queue.rebuilt', 'queue', 'menzil', null, null, jsonb_build_object('messages', v_placed));
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
  return v_placed;
end $$;

-- Transaction ids of another cluster that lie ahead of this one would be given out again, and no reader of the feed could tell
-- the rows apart. Such rows get the newest id below which all is decided: not that of this transaction, whose ends a tally counts
-- as live. No reader can stand behind them: feed_position refuses its readers while there are such rows.
drop function if exists menzil._adopt_history();
create or replace function menzil._adopt_history(p_before pg_snapshot) returns void
language plpgsql as $$
declare
  v_next xid8 := pg_snapshot_xmax(pg_current_snapshot());
  v_decided xid8 := (pg_snapshot_xmin(p_before)::text::bigint - 1)::text::xid8;
begin
  update menzil.done d set ended_xid = v_decided where d.ended_xid >= v_next;
  update menzil.event e set xid = v_decided where e.xid >= v_next;
end $$;

-- What is in flight: leases hold live messages only, each gate counts its own anew, and a circuit whose probe is not in
-- flight sends the next one.
create or replace function menzil._rebuild_leases(p_now timestamptz) returns void
language plpgsql as $$
declare
  v_over bigint[] := array(select u.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id)
                            where not exists (select 1 from pg_temp.menzil_live v where v.id = u.id));
begin
  if v_over <> '{}' then
    update menzil.lease l set ids = array(select u.id from unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) with ordinality u(id, n) where u.id <> all (v_over) order by u.n)
     where coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id))) && v_over;
    delete from menzil.lease l where l.ids = '{}';
  end if;
  insert into menzil.gate (channel_id, paused, max_concurrency, release_interval_ms, release_count)
    select c.id, c.paused or not c.enabled, c.max_concurrency, c.release_interval_ms, c.release_count from menzil.channel c on conflict do nothing;
  update menzil.gate g set epoch = g.epoch + 1,
      in_flight = case when g.max_concurrency is null then 0
                       else coalesce((select sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)) from menzil.lease l where l.channel_id = g.channel_id), 0) end,
      -- Leases that name no channel may hold messages of this one.
      counts_from = case when exists (select 1 from menzil.lease l where l.channel_id is null) then p_now end;
  update menzil.lease l set epoch = case when g.max_concurrency is not null then g.epoch end from menzil.gate g where g.channel_id = l.channel_id;
  update menzil.gate g set circuit = 2, probe_at = p_now
   where g.circuit = 1 and not exists (select 1 from menzil.lease l where l.channel_id = g.channel_id and l.leased_at >= g.probe_at)
     and not exists (select 1 from menzil.line n where n.channel_id = g.channel_id and n.news_at >= g.probe_at);
end $$;

-- What waits: the schedule, ordering keys, expiries, runs and lanes. The head of an ordering key is the message that holds it
-- already: in flight, waiting for its retry, a dead letter that blocks it, or raised before; otherwise its first message.
create or replace function menzil._rebuild_waiting(p_now timestamptz) returns bigint
language plpgsql as $$
declare
  v_heads bigint[];
  v_later bigint;
  v_keyed bigint;
  v_in_runs bigint;
begin
  delete from menzil.expiring e where not exists (select 1 from pg_temp.menzil_live v where v.id = e.id);
  insert into menzil.expiring (expires_at, id, created_at)
    select v.expires_at, v.id, v.created_at from pg_temp.menzil_live v
     where v.expires_at is not null and not exists (select 1 from menzil.expiring e where e.id = v.id);
  delete from menzil.scheduled s
   where not exists (select 1 from pg_temp.menzil_live v where v.id = s.id)
      or exists (select 1 from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id) where u.id = s.id)
      or exists (select 1 from menzil.scheduled o where o.id = s.id and o.due_at < s.due_at);
  delete from pg_temp.menzil_live v using (select unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) as id from menzil.lease l union all select s.id from menzil.scheduled s) p where p.id = v.id;

  insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key, holds_key)
    select v.due_at, v.id, v.channel_id, v.rank, v.place_at, v.flags, v.ordering_key, v.came_back and v.ordering_key is not null
      from pg_temp.menzil_live v where v.due_at > p_now;
  get diagnostics v_later = row_count;
  delete from pg_temp.menzil_live v where v.due_at > p_now;

  v_heads := array(select q.id from menzil.key_queue q where q.waits = 0);
  delete from menzil.key_queue;
  with holds as (
    select m.channel_id, m.ordering_key, m.id
      from (select unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) as id from menzil.lease l
            union select s.id from menzil.scheduled s where s.holds_key
            union select d.original_message_id from menzil.dead_letter d where d.blocks_key) h
      join menzil.message m on m.id = h.id where m.ordering_key is not null
  ), head as (
    select distinct on (v.channel_id, v.ordering_key) v.channel_id, v.ordering_key, v.id
      from pg_temp.menzil_live v left join unnest(v_heads) q(id) on q.id = v.id
     where v.ordering_key is not null
       and not exists (select 1 from holds h where h.channel_id = v.channel_id and h.ordering_key = v.ordering_key)
     order by v.channel_id, v.ordering_key, q.id is null, v.id
  )
  insert into menzil.key_queue (channel_id, ordering_key, waits, id)
    select h.channel_id, h.ordering_key, 0, h.id from holds h
    union all select h.channel_id, h.ordering_key, 0, h.id from head h
    union all select v.channel_id, v.ordering_key, 1, v.id from pg_temp.menzil_live v
               where v.ordering_key is not null and v.id not in (select h.id from head h);
  delete from pg_temp.menzil_live v using menzil.key_queue q where q.waits = 1 and q.id = v.id;
  get diagnostics v_keyed = row_count;

  insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids)
    select q.channel_id, q.rank, q.first_due, q.ids[1], q.last_due, q.ids[q.n], q.n, q.flags, case when q.gaps then q.ids end
      from (select w.channel_id, w.rank, min(w.place_at) as first_due, max(w.place_at) as last_due, array_agg(w.id order by w.k) as ids,
                   count(*)::integer as n, bit_or(w.flags) as flags, min(w.id - w.k) <> max(w.id - w.k) as gaps
              from (select v.*, row_number() over (partition by v.channel_id, v.rank order by v.place_at, v.id) as k from pg_temp.menzil_live v) w
             group by w.channel_id, w.rank, (w.k - 1) / 256) q;
  select count(*) into v_in_runs from pg_temp.menzil_live;
  insert into menzil.lane (channel_id, rank, gated, push, name, head_due, head_id, tail_due, tail_id, next_at)
    select distinct on (r.channel_id, r.rank) r.channel_id, r.rank, menzil._is_gated(c), c.protocol is not null, c.name, r.due_at, r.first_id,
           last_value(r.last_due) over w, last_value(r.last_id) over w, p_now
      from menzil.run r join menzil.channel c on c.id = r.channel_id
    window w as (partition by r.channel_id, r.rank order by r.due_at, r.first_id rows between unbounded preceding and unbounded following)
     order by r.channel_id, r.rank, r.due_at, r.first_id;
  insert into menzil.lane_name (channel_id, rank) select l.channel_id, l.rank from menzil.lane l;
  insert into menzil.rank_used (rank) select distinct l.rank from menzil.lane l;
  return v_later + v_keyed + v_in_runs;
end $$;
