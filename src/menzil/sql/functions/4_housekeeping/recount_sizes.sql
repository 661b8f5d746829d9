-- Counts anew what channels with a max_size hold, some in each round. Sends that were open when the limit was set did not tell
-- the size log, and neither did ends. Also finds ids that were given out to sends that rolled back, once the queue looks half full:
-- a send does that only in READ COMMITTED. The job remembers where the last round ended. Returns how many channels were counted.
create or replace function menzil._recount_sizes(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_from integer := coalesce((select (j.state ->> 'channel')::integer from menzil.job j where j.name = 'sizes'), 0);
  v_channels integer[];
begin
  perform menzil._tally(true) from menzil.setting_value s
    where s.max_queue_size > 0 and menzil._register('menzil.message_id') - menzil._register('menzil.ended_count') > s.max_queue_size / 2;
  v_channels := array(select c.id from menzil.channel c where c.max_size is not null and c.id > v_from order by c.id limit p_limit);
  perform menzil._count_size(u.id) from unnest(v_channels) u(id);
  update menzil.job j set state = case when cardinality(v_channels) = p_limit then jsonb_build_object('channel', v_channels[p_limit]) end where j.name = 'sizes';
  return cardinality(v_channels);
end $$;
