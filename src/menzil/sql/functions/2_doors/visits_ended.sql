-- Whether visits of this lane that began before have ended, for a send, which is not to wait for consumers: 50 ms for the first lane that is
-- held, and less for each that follows. A lane that was held stays so for a second of this transaction, or a batch whose keys belong
-- to thousands of expired messages would wait for each of them.
create or replace function menzil._visits_ended(p_channel_id integer, p_rank smallint) returns boolean
language plpgsql as $$
declare
  v_held jsonb := coalesce(nullif(current_setting('menzil.held_lanes', true), ''), '{}');
  v_lane text := p_channel_id || '/' || p_rank;
begin
  if (v_held ->> v_lane)::numeric > extract(epoch from clock_timestamp()) - 1 then
    return false;
  elsif menzil._let_visits_end(p_channel_id, p_rank, greatest(2, 50 / (1 + (select count(*) from jsonb_object_keys(v_held))))::integer) then
    return true;
  end if;
  perform set_config('menzil.held_lanes', (v_held || jsonb_build_object(v_lane, extract(epoch from clock_timestamp())))::text, true);
  return false;
end $$;
