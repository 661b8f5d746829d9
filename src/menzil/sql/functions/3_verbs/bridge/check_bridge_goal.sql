-- A bridge has one goal, which is there. Records of a bridge that publishes and that can be no event become dead letters of the channel
-- menzil.bridge, which this makes.
create or replace function menzil._check_bridge_goal(p_channel text, p_event_type text) returns void
language plpgsql as $$
begin
  if (p_channel is null) = (p_event_type is null) then
    perform menzil._refuse_value('A bridge sends to a channel or publishes an event type: one of the two is needed.', 'Give the name of a channel or endpoint, or that of an event type.');
  elsif p_channel is not null then
    perform menzil._channel_for(p_channel);
  else
    perform menzil._refuse_unknown_event_type(p_event_type) where not exists (select 1 from menzil.event_type t where t.name = p_event_type);
    perform menzil.channel_set('menzil.bridge') where not exists (select 1 from menzil.channel c where c.name = 'menzil.bridge' and c.dropped_at is null);
  end if;
end $$;
