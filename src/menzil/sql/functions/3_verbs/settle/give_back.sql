-- Messages of a channel with a gate are no longer in flight: their slots come back, and, if they ended, their room. The door into
-- the log for slots.
create or replace function menzil._give_back(p_taken menzil.taken, p_ended boolean) returns void
language plpgsql as $$
begin
  if p_taken.epoch is not null then   -- else the gate did not count them
    insert into menzil.line (channel_id, epoch, freed) values (p_taken.channel_id, p_taken.epoch, cardinality(p_taken.ids));
  end if;
  if p_ended and (select c.max_size from menzil.channel c where c.id = p_taken.channel_id) is not null then
    perform menzil._change_size(p_taken.channel_id, - cardinality(p_taken.ids));
  end if;
end $$;
