-- The gates of these channels, or of all (null), as the next dequeue will find them: with the news of endpoints and the slots that no dequeue
-- has folded yet, and without leases that ran out: a probe whose lease ran out lets the next one go. in_flight counts only where the channel
-- has a concurrency limit. Reads only.
create or replace function menzil._gates_seen(p_channels integer[], p_now timestamptz) returns setof menzil.gate
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_gate menzil.gate;
  v_line menzil.line;
  v_told record;
  v_settings menzil.setting_value;
begin
  select s.* into v_settings from menzil.setting_value s;
  for v_told in
    with told as materialized (
      select n.* from menzil._lines_ahead(20000) n where n.rank is null and (n.channel_id = any (p_channels)) is not false
    ), lost as materialized (
      select l.* from (select l.* from menzil.lease l where l.watch_at <= p_now order by l.watch_at limit 1000) l where l.unlock_at <= p_now and l.channel_id is not null
    ), back as materialized (   -- slots that come back: told in the log, or of leases that ran out
      select q.channel_id, q.epoch, sum(q.n)::integer as n
        from (select t.channel_id, t.epoch, t.freed as n from told t where t.freed > 0
              union all
              select l.channel_id, l.epoch, coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1) from lost l where l.epoch is not null) q
       group by 1, 2
    ), news as materialized (   -- told in the log, or to be told with menzil._tell_nothing when these leases are taken back
      select q.channel_id, array_agg(row(q.*)::menzil.line order by q.due_at, q.news = 1) as lines
        from (select t.* from told t where t.news is not null
              union all
              select null, l.channel_id, null, p_now, null, null, null, null, null, null, null, 4, 1, l.leased_at, null from lost l) q
       group by 1
    )
    select g.gate, n.lines, coalesce(b.n, 0) as back
      from (select u.id from unnest(p_channels) u(id) union all select c.id from menzil.channel c where p_channels is null and c.dropped_at is null) c
      cross join lateral (select g as gate, g.epoch from menzil.gate g where g.channel_id = c.id offset 0) g
      left join news n on n.channel_id = c.id left join back b on b.channel_id = c.id and b.epoch = g.epoch
  loop
    v_gate := v_told.gate;
    foreach v_line in array coalesce(v_told.lines, '{}') loop
      v_gate := menzil._hear_news(v_gate, v_line, v_settings.circuit_breaker_threshold, v_settings.circuit_breaker_cooldown);
    end loop;
    v_gate.in_flight := greatest(0, v_gate.in_flight - v_told.back);
    if v_gate.counts_from is not null and v_gate.max_concurrency is not null then   -- leases from before the limit was set
      v_gate.in_flight := v_gate.in_flight + menzil._uncounted(v_gate.channel_id, v_gate.epoch);
    end if;
    return next v_gate;
  end loop;
end $$;
