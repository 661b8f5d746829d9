-- The door into the log for ordering keys that may need a head.
create or replace function menzil._tell_keys(p_channels integer[], p_keys text[]) returns void
language plpgsql as $$
begin
  insert into menzil.line (channel_id, ordering_key)
    select distinct u.channel_id, u.ordering_key from unnest(p_channels, p_keys) u(channel_id, ordering_key) where u.ordering_key is not null;
end $$;
