-- Takes no new messages from now on, drains what it has, then disappears.
create or replace function menzil.channel_release(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
begin
  perform menzil._refuse_replica();
  if v_channel.released_at is null then
    update menzil.channel c set released_at = clock_timestamp(), updated_at = clock_timestamp() where c.id = v_channel.id;
    perform menzil._event('channel.released', 'channel', p_name, null, null);
  end if;
  perform menzil._finish_releases(v_channel.id);
end $$;
