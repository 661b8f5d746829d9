-- How a channel or endpoint tries again; NULL leaves it to the settings.
create or replace function menzil.set_retry_policy(p_name text, p_policy jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_channel menzil.channel := menzil._channel_for(p_name);
begin
  perform menzil._refuse_replica();
  -- The trigger channel_check validates it, as it does for an UPDATE of menzil.endpoints.
  update menzil.channel c set retry_policy = p_policy where c.id = v_channel.id;
end $$;
