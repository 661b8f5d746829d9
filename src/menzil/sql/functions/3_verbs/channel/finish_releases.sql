-- Released channels that have drained disappear: every one, or this one. An admin who holds the row of one is not waited for.
-- Returns how many.
create or replace function menzil._finish_releases(p_channel_id integer default null) returns integer
language plpgsql as $$
declare
  v_channel record;
  v_count integer := 0;
begin
  for v_channel in
    select c.id, c.name from menzil.channel c
     where c.released_at is not null and c.dropped_at is null and (p_channel_id is null or c.id = p_channel_id) for update skip locked
  loop
    continue when menzil._count_channel(v_channel.id) > 0;
    update menzil.channel c set dropped_at = clock_timestamp() where c.id = v_channel.id;
    perform menzil._event('channel.dropped', 'channel', v_channel.name, null, null);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
