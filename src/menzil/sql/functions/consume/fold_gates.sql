-- Gives slots back to the gates that counted them and lets their held lanes take turns again.
-- Nobody waits: what belongs to a gate in use goes back into the log.
create or replace function menzil._fold_gates(p_now timestamptz, p_channel integer[], p_epoch integer[], p_freed integer[]) returns void
language plpgsql as $$
declare
  v_mine integer[];
begin
  select array_agg(g.channel_id) into v_mine
    from (select distinct n.channel_id from unnest(p_channel) n(channel_id)) u
    cross join lateral (select g.channel_id from menzil.gate g where g.channel_id = u.channel_id for update skip locked offset 0) g;
  insert into menzil.arrival (generation, channel_id, epoch, freed)
    select menzil._generation(p_now), u.channel_id, u.epoch, u.freed from unnest(p_channel, p_epoch, p_freed) u(channel_id, epoch, freed)
     where v_mine is null or u.channel_id <> all (v_mine);
  if v_mine is null then
    return;
  end if;
  update menzil.gate g set in_flight = g.in_flight - coalesce(
      (select sum(u.freed) from unnest(p_channel, p_epoch, p_freed) u(channel_id, epoch, freed)
        where u.channel_id = g.channel_id and u.epoch = g.epoch), 0)
   where g.channel_id = any (v_mine);
  perform menzil._wake_lanes(v_mine, p_now);
end $$;

-- Lanes that their gate held get a turn; the gate is asked again then. A held lane that another consumer has locked for
-- its own news is missed here: the log is told to try again.
create or replace function menzil._wake_lanes(p_channels integer[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_at tid[];
begin
  v_at := array(select l.ctid from menzil.lane l where l.channel_id = any (p_channels) and l.next_at is null and l.phase <> 0
                   for update skip locked);
  insert into menzil.arrival (generation, channel_id, epoch, freed)
    select distinct menzil._generation(p_now), l.channel_id, 0, 0 from menzil.lane l
     where l.channel_id = any (p_channels) and l.next_at is null and l.phase <> 0 and l.ctid <> all (v_at);
  update menzil.lane l set next_at = p_now where l.ctid = any (v_at);
end $$;
