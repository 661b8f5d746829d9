-- Room in the queue and in each of these channels, one entry per new message.
create or replace function menzil._check_room_for(p_channels integer[], p_limit bigint) returns void
language plpgsql as $$
begin
  perform menzil._check_room(cardinality(p_channels), p_limit);
  perform menzil._check_channel_room(c.id, c.name, u.count, c.max_size)
     from (select n.id, count(*) from unnest(p_channels) n(id) group by n.id) u
     cross join lateral (select c.* from menzil.channel c where c.id = u.id offset 0) c where c.max_size is not null;
end $$;
