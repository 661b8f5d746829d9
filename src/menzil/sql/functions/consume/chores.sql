-- Once a second, inside some dequeue: schedules fire, and tables that an old snapshot keeps from being vacuumed are
-- rewritten or truncated. Nothing here waits for anyone longer than a moment, and nothing fails a dequeue.
create or replace function menzil._chores(p_now timestamptz) returns void
language plpgsql as $$
begin
  if exists (select 1 from menzil.schedule s where not s.paused and s.next_at <= p_now) then
    perform menzil.schedule_fire_due(100);
  end if;
  if exists (select 1 from menzil.message m where m.expires_at <= p_now) then
    perform menzil._expire_messages(p_now, 500);
  end if;
  perform menzil._truncate_arrivals(p_now);
  perform menzil._rewrite_lanes();
  perform menzil._finish_releases();
  perform menzil._ensure_archive_months(p_now, 3);
  if exists (select 1 from menzil.archive_default) then
    perform menzil._rescue_strays();
  end if;
end $$;

-- Empties generations of the arrival log that rest. NOWAIT: a sender with an open transaction keeps its generation, and
-- nobody queues behind this attempt.
create or replace function menzil._truncate_arrivals(p_now timestamptz) returns void
language plpgsql as $$
declare
  v_table text;
  v_empty boolean;
begin
  for i in 1 .. 3 loop
    v_table := format('menzil.arrival_%s', (menzil._generation(p_now) + i) & 3);
    continue when pg_relation_size(v_table) < 65536;
    begin
      execute format('lock table %s in access exclusive mode nowait', v_table);
      execute format('select not exists (select 1 from %s)', v_table) into v_empty;
      if v_empty then
        execute format('truncate %s', v_table);
      end if;
    exception when lock_not_available then
      null;
    end;
  end loop;
end $$;

-- Lanes and gates are written all the time: when old versions outgrow the live rows several times, keep only the live.
create or replace function menzil._rewrite_lanes() returns void
language plpgsql
set lock_timeout = '100ms' as $$
declare
  v_lanes menzil.lane[];
  v_gates menzil.gate[];
begin
  if pg_relation_size('menzil.lane') > (select 4 * greatest(s.last_value, 32768) from menzil.lane_bytes s) then
    lock table menzil.lane in access exclusive mode;
    v_lanes := array(select l from menzil.lane l);
    truncate menzil.lane;
    insert into menzil.lane select u.* from unnest(v_lanes) u;
    perform setval('menzil.lane_bytes', pg_relation_size('menzil.lane'));
  end if;
  if pg_relation_size('menzil.gate') > (select 4 * greatest(s.last_value, 32768) from menzil.gate_bytes s) then
    lock table menzil.gate in access exclusive mode;
    v_gates := array(select g from menzil.gate g);
    truncate menzil.gate;
    insert into menzil.gate select u.* from unnest(v_gates) u;
    perform setval('menzil.gate_bytes', pg_relation_size('menzil.gate'));
  end if;
exception when lock_not_available then
  null;
end $$;

-- A released channel disappears when it has drained.
create or replace function menzil._finish_releases() returns void
language plpgsql as $$
declare
  v_channel record;
begin
  for v_channel in select c.id, c.name from menzil.channel c where c.released_at is not null and c.dropped_at is null loop
    if menzil._channel_is_empty(v_channel.id) then
      update menzil.channel c set dropped_at = clock_timestamp() where c.id = v_channel.id and c.dropped_at is null;
      perform menzil._event('channel.dropped', 'channel', v_channel.name, null, null);
    end if;
  end loop;
end $$;
