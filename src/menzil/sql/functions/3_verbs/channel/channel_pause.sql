-- A paused channel accepts messages and holds them; what is in flight may finish.
create or replace function menzil.channel_pause(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._set_paused(p_name, true) $$;

create or replace function menzil.channel_resume(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._set_paused(p_name, false) $$;

create or replace function menzil._set_paused(p_name text, p_paused boolean) returns void
language plpgsql as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
begin
  perform menzil._refuse_replica();
  update menzil.channel c set paused = p_paused, updated_at = clock_timestamp() where c.id = v_channel.id and c.paused <> p_paused;
  if found then
    perform menzil._event(case when p_paused then 'channel.paused' else 'channel.resumed' end, 'channel', p_name, null, null);
  end if;
end $$;
