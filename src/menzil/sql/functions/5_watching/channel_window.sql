-- The leases in the current window of a channel's rate limit, by time: when, and how many messages. None where it has no rate limit.
-- Reads only.
create or replace function menzil.channel_window(p_channel text) returns table (at timestamptz, messages integer)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_channel menzil.channel := menzil._channel_for(p_channel);
begin
  return query
    select u.at, u.n from menzil.gate g cross join lateral unnest(g.released_at, g.released) u(at, n)
     where g.channel_id = v_channel.id and v_channel.release_interval_ms > 0
       and u.at > clock_timestamp() - v_channel.release_interval_ms * interval '1 ms'
     order by u.at;
end $$;
