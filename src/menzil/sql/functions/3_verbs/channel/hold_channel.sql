-- Locks the gate and the lanes of a channel, waiting for consumers that are at them. The gate first: a lane is born under it.
create or replace function menzil._hold_channel(p_channel_id integer) returns void
language plpgsql as $$
begin
  perform 1 from menzil.gate g where g.channel_id = p_channel_id for update;
  perform 1 from menzil.lane l where l.channel_id = p_channel_id order by l.rank for update;
end $$;
