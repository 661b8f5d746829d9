-- Cancels everything that waits in a channel; what is in flight may finish. Returns how many. The lanes and the gate of the
-- channel are locked until the caller's transaction ends: its own consumers wait for it, no other channel does.
create or replace function menzil.channel_purge(p_name text) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
  v_now timestamptz := clock_timestamp();
  v_ids bigint[];
  v_mine bigint[];
  v_left bigint[] := '{}';
  v_open boolean;
  v_total bigint := 0;
begin
  perform menzil._hold_channel(v_channel.id);
  v_open := menzil._withdrawals_are_open(pg_current_snapshot());   -- with the lanes locked, as a visit asks
  perform menzil._fold_channel(v_channel.id, v_now);
  v_ids := array(
    select u.id from menzil.run r
      cross join lateral (select l.head_due, l.head_id, l.gone from menzil.lane l where l.channel_id = r.channel_id and l.rank = r.rank order by l.v desc limit 1) l
      cross join lateral unnest(case when r.ids is null then array(select generate_series(r.first_id, r.first_id + r.n - 1)) else r.ids end) with ordinality u(id, n)
     where r.channel_id = v_channel.id and u.n > case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end);
  delete from menzil.run r where r.channel_id = v_channel.id;
  update menzil.lane l set gone = 0, tail_due = null, tail_id = null, next_at = null, v = l.v + 1 where l.channel_id = v_channel.id;
  -- A message that an open transaction cancels is left to it: on the schedule where it is, from a lane aside.
  if v_open then
    v_mine := array(select m.id from unnest(v_ids) u(id) cross join lateral (select m.id from menzil.message m where m.id = u.id for update skip locked offset 0) m);
    v_left := array(select u.id from unnest(v_ids) u(id) where u.id not in (select k.id from unnest(v_mine) k(id)));
    v_ids := v_mine;
  end if;
  with gone as (
    delete from menzil.scheduled s where s.ctid = any (array(
      select d.ctid from menzil.scheduled d
       where d.channel_id = v_channel.id and (not v_open or (select 1 from menzil.message m where m.id = d.id for update skip locked) is not null)
         for update skip locked))
    returning s.id
  )
  select v_ids || coalesce(array_agg(g.id), '{}') into v_ids from gone g;
  perform menzil._set_aside(v_left, 7::smallint, v_now);
  with gone as (
    delete from menzil.key_queue k where k.ctid = any (array(
      select q.ctid from menzil.key_queue q where q.channel_id = v_channel.id and q.waits = 1 for update skip locked)) returning k.id
  )
  select v_ids || coalesce(array_agg(g.id), '{}') into v_ids from gone g;
  with gone as (
    delete from menzil.withdrawn w where w.id = any (v_ids) returning w.id   -- cancelled already
  )
  select array(select g.id from gone g) into v_mine;
  perform menzil._free_keys(v_mine);   -- a message that was just leaving the schedule took its key after the cancel
  v_ids := array(select u.id from unnest(v_ids) u(id) where u.id not in (select g.id from unnest(v_mine) g(id)));
  v_total := cardinality(v_ids);
  if v_total > 0 then
    perform menzil._end_waiting(v_ids, 'cancelled', clock_timestamp());
    perform menzil._event('channel.purged', 'channel', p_name, null, null, jsonb_build_object('messages', v_total));
  end if;
  return v_total;
end $$;
