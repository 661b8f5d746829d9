-- A paused channel accepts messages and holds them; what is in flight may finish.
create or replace function menzil.channel_pause(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._set_paused(p_name, true);
end $$;

create or replace function menzil.channel_resume(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._set_paused(p_name, false);
end $$;

create or replace function menzil._set_paused(p_name text, p_paused boolean) returns void
language plpgsql as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
begin
  update menzil.channel c set paused = p_paused, updated_at = clock_timestamp() where c.id = v_channel.id and c.paused <> p_paused;
  if found then
    perform menzil._event(case when p_paused then 'channel.paused' else 'channel.resumed' end, 'channel', p_name, null, null);
  end if;
end $$;

-- Takes no new messages from now on, drains what it has, then disappears.
create or replace function menzil.channel_release(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
begin
  if v_channel.released_at is null then
    update menzil.channel c set released_at = clock_timestamp(), updated_at = clock_timestamp() where c.id = v_channel.id;
    perform menzil._event('channel.released', 'channel', p_name, null, null);
  end if;
  perform menzil._finish_releases();
end $$;

-- Cancels everything that waits in a channel; what is in flight may finish. Returns how many.
create or replace function menzil.channel_purge(p_name text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
  v_ids bigint[];
  v_total bigint := 0;
begin
  perform menzil._tell_withdrawal();
  loop
    v_ids := array(select q.id from (
      (select r.id from menzil.ready r where r.channel_id = v_channel.id limit 10000)
      union all (select s.id from menzil.scheduled s where s.channel_id = v_channel.id limit 10000)
      union all (select k.id from menzil.key_queue k where k.channel_id = v_channel.id and k.place = 1 limit 10000)) q limit 10000);
    v_ids := menzil._withdraw(v_ids, true);
    exit when v_ids = '{}';
    perform menzil._end_messages(v_ids, 'cancelled', clock_timestamp());
    v_total := v_total + cardinality(v_ids);
  end loop;
  if v_total > 0 then
    perform menzil._event('channel.purged', 'channel', p_name, null, null, jsonb_build_object('messages', v_total));
  end if;
  return v_total;
end $$;

create or replace function menzil.purge_endpoint(p_name text) returns bigint
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  return menzil.channel_purge(p_name);
end $$;
