-- What passed in one channel, or in all of them together (channel is then null), from p_from (NULL: an hour before p_to) to before p_to
-- (NULL: now), in steps of p_step, which begin at multiples of p_step since 2000-01-01 UTC. Counters are sums over a step, gauges its
-- highest value. Steps without life have no row. What is older than 48 hours is kept by the hour.
create or replace function menzil.pulse_of(
  p_channel text default null, p_from timestamptz default null, p_to timestamptz default null, p_step interval default '1 min'
) returns table (
  at timestamptz, channel text, waiting bigint, in_flight bigint, oldest_s double precision, sent bigint, completed bigint, failed_tries bigint,
  dead bigint, deferred bigint, expired bigint, cancelled bigint, ended_ms bigint[], try_ms bigint[]
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_to timestamptz := least(greatest(coalesce(p_to, clock_timestamp()), '2000-01-01'), '9999-12-31');   -- far times are as good as these
  v_from timestamptz := greatest(coalesce(p_from, v_to - interval '1 h'), '1999-01-01');
  v_channels integer[] := array[0];
begin
  if p_step is null then
    perform menzil._refuse_null('A step');
  elsif p_step not between interval '1 min' and interval '90 days' or extract(month from p_step) <> 0 then
    perform menzil._refuse_value(format('A step of %s is out of range, it must be 1 minute to 90 days, and no months.', p_step), 'Use 1 min, 1 hour or 1 day.');
  end if;
  if p_channel is not null then
    v_channels := array(select c.id from menzil.channel c where c.name = p_channel);   -- also those that are gone
    perform menzil._refuse_unknown(p_channel) where v_channels = '{}';
  end if;
  return query
    select date_bin(p_step, p.at, '2000-01-01 00:00:00+00'), p_channel, max(p.waiting), max(p.in_flight), max(p.oldest_s),
           sum(p.sent)::bigint, sum(p.completed)::bigint, sum(p.failed_tries)::bigint, sum(p.dead)::bigint, sum(p.deferred)::bigint, sum(p.expired)::bigint, sum(p.cancelled)::bigint,
           case when count(p.ended_ms) > 0 then array[coalesce(sum(p.ended_ms[1]), 0)::bigint, coalesce(sum(p.ended_ms[2]), 0)::bigint, coalesce(sum(p.ended_ms[3]), 0)::bigint, coalesce(sum(p.ended_ms[4]), 0)::bigint, coalesce(sum(p.ended_ms[5]), 0)::bigint, coalesce(sum(p.ended_ms[6]), 0)::bigint, coalesce(sum(p.ended_ms[7]), 0)::bigint, coalesce(sum(p.ended_ms[8]), 0)::bigint, coalesce(sum(p.ended_ms[9]), 0)::bigint, coalesce(sum(p.ended_ms[10]), 0)::bigint, coalesce(sum(p.ended_ms[11]), 0)::bigint, coalesce(sum(p.ended_ms[12]), 0)::bigint] end,
           case when count(p.try_ms) > 0 then array[coalesce(sum(p.try_ms[1]), 0)::bigint, coalesce(sum(p.try_ms[2]), 0)::bigint, coalesce(sum(p.try_ms[3]), 0)::bigint, coalesce(sum(p.try_ms[4]), 0)::bigint, coalesce(sum(p.try_ms[5]), 0)::bigint, coalesce(sum(p.try_ms[6]), 0)::bigint, coalesce(sum(p.try_ms[7]), 0)::bigint, coalesce(sum(p.try_ms[8]), 0)::bigint, coalesce(sum(p.try_ms[9]), 0)::bigint, coalesce(sum(p.try_ms[10]), 0)::bigint, coalesce(sum(p.try_ms[11]), 0)::bigint, coalesce(sum(p.try_ms[12]), 0)::bigint] end
      from unnest(v_channels) c(id)
      cross join lateral (
        (select m.* from menzil.pulse_minute m where m.channel_id = c.id and m.at >= v_from and m.at < v_to order by m.at)
        union all (select h.* from menzil.pulse_hour h where h.channel_id = c.id and h.at >= v_from and h.at < v_to order by h.at)) p
     group by 1 order by 1;
end $$;
