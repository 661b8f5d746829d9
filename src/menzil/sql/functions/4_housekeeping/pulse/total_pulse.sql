-- Adds what was counted to the totals of its channels, and to channel 0, which is all of them.
create or replace function menzil._total_pulse(p_news menzil.pulse_news[]) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
begin
  if p_news = '{}' then
    return;   -- the sum of nothing would be a new version of channel 0 in every round
  end if;
  insert into menzil.pulse_total as t (channel_id, sent, completed, dead, expired, cancelled, deferred, recovered, failed, ended_ms, try_ms)
    select coalesce(n.channel_id, 0),
           coalesce(sum(n.n) filter (where n.what = 'sent'), 0), coalesce(sum(n.n) filter (where n.what = 'completed'), 0),
           coalesce(sum(n.n) filter (where n.what = 'failed'), 0), coalesce(sum(n.n) filter (where n.what = 'expired'), 0),
           coalesce(sum(n.n) filter (where n.what = 'cancelled'), 0), coalesce(sum(n.n) filter (where n.what = 'deferred'), 0),
           coalesce(sum(n.n) filter (where n.what = 'recovered'), 0),
           array[coalesce(sum(n.n) filter (where n.what = 'status 0'), 0), coalesce(sum(n.n) filter (where n.what = 'status 1'), 0),
                         coalesce(sum(n.n) filter (where n.what = 'status 2'), 0), coalesce(sum(n.n) filter (where n.what = 'status 3'), 0),
                         coalesce(sum(n.n) filter (where n.what = 'status 4'), 0), coalesce(sum(n.n) filter (where n.what = 'status 5'), 0)]::bigint[],
           array[coalesce(sum(n.n) filter (where n.bucket = 1 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 2 and n.what <> 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 3 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 4 and n.what <> 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 5 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 6 and n.what <> 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 7 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 8 and n.what <> 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 9 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 10 and n.what <> 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 11 and n.what <> 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 12 and n.what <> 'try'), 0)]::bigint[],
           array[coalesce(sum(n.n) filter (where n.bucket = 1 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 2 and n.what = 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 3 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 4 and n.what = 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 5 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 6 and n.what = 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 7 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 8 and n.what = 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 9 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 10 and n.what = 'try'), 0),
                         coalesce(sum(n.n) filter (where n.bucket = 11 and n.what = 'try'), 0), coalesce(sum(n.n) filter (where n.bucket = 12 and n.what = 'try'), 0)]::bigint[]
      from unnest(p_news) n group by grouping sets ((n.channel_id), ()) order by 1
  on conflict (channel_id) do update set
    sent = t.sent + excluded.sent, completed = t.completed + excluded.completed, dead = t.dead + excluded.dead, expired = t.expired + excluded.expired,
    cancelled = t.cancelled + excluded.cancelled, deferred = t.deferred + excluded.deferred, recovered = t.recovered + excluded.recovered,
    failed = menzil._sum_counters(t.failed, excluded.failed), ended_ms = menzil._sum_counters(t.ended_ms, excluded.ended_ms),
    try_ms = menzil._sum_counters(t.try_ms, excluded.try_ms);
end $$;

create or replace function menzil._sum_counters(p_these bigint[], p_those bigint[]) returns bigint[]
language sql immutable parallel safe as $$
  select array(select u.these + u.those from unnest(p_these, p_those) with ordinality u(these, those, n) order by u.n)
$$;
