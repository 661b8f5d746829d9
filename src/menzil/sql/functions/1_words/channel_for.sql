-- The channel of that name for an operator's action, or a refusal.
create or replace function menzil._channel_for(p_name text) returns menzil.channel
language plpgsql stable as $$
declare
  v_channel menzil.channel;
begin
  select c.* into v_channel from menzil.channel c where c.name = p_name and c.dropped_at is null;
  if not found then
    perform menzil._refuse_unknown(p_name);
  end if;
  return v_channel;
end $$;
