-- Tells the consumers which slots of limited channels came back, and which ordering keys may need a head.
create or replace function menzil._free_slots(p_channels integer[], p_epochs integer[], p_now timestamptz) returns void
language plpgsql as $$
begin
  if array_position(p_epochs, null) is null or cardinality(array_remove(p_epochs, null)) > 0 then
    insert into menzil.arrival (generation, channel_id, epoch, freed)
      select menzil._generation(p_now), u.channel_id, u.epoch, count(*)
        from unnest(p_channels, p_epochs) u(channel_id, epoch) where u.epoch is not null group by u.channel_id, u.epoch;
  end if;
end $$;

create or replace function menzil._free_keys(p_ids bigint[], p_channels integer[], p_keys text[], p_now timestamptz) returns void
language plpgsql as $$
begin
  delete from menzil.key_queue where ctid = any (array(
    select q.at from unnest(p_ids, p_channels, p_keys) u(id, channel_id, ordering_key)
      cross join lateral (select q.ctid as at from menzil.key_queue q
                           where q.channel_id = u.channel_id and q.ordering_key = u.ordering_key and q.place in (0, 1) and q.id = u.id offset 0) q
     where u.ordering_key is not null));
  insert into menzil.arrival (generation, channel_id, ordering_key)
    select distinct menzil._generation(p_now), u.channel_id, u.ordering_key from unnest(p_channels, p_keys) u(channel_id, ordering_key)
     where u.ordering_key is not null;
end $$;
