-- What settles tell about endpoints: only appended, folded by the next who dequeues or looks. One line per endpoint and
-- call. p_kinds: 1 success, 2 failure, 3 alive, 4 nothing learned.

-- Successes are told while there is something to take back (a failure in the last minute, a circuit that is not closed)
-- and otherwise once a second, for people.
create or replace function menzil._tell_success(p_channels integer[], p_leased_ats timestamptz[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_trouble boolean := menzil._register('menzil.failed_at') > menzil._microseconds(p_now) - 60000000;
begin
  insert into menzil.arrival (generation, channel_id, due_at, news, news_count, news_at)
    select menzil._generation(p_now), u.channel_id, p_now, 1, u.count, u.at
      from (select n.channel_id, count(*)::integer as count, max(n.leased_at) as at
              from unnest(p_channels, p_leased_ats) n(channel_id, leased_at) group by n.channel_id) u
      cross join lateral (select 1 from menzil.channel c where c.id = u.channel_id and c.protocol is not null offset 0) c
      cross join lateral (select g.circuit, g.failure_count, g.last_success_at from menzil.gate g where g.channel_id = u.channel_id offset 0) g
     where v_trouble or g.circuit > 0 or g.failure_count > 0 or (g.last_success_at > p_now - interval '1 s') is not true;
end $$;

-- Failures, as their error texts say. A refusal for good is the message's fault, and 429 with a time to come back is no
-- fault at all; with such a time 429 and 503 also ask for a rest of the whole endpoint.
create or replace function menzil._tell_failure(
  p_channels integer[], p_leased_ats timestamptz[], p_errors text[], p_retry_afters interval[], p_now timestamptz
) returns void
language plpgsql as $$
begin
  insert into menzil.arrival (generation, channel_id, due_at, news, news_count, news_at, wait_until)
    select menzil._generation(p_now), k.channel_id, p_now, k.kind, count(*), max(k.leased_at),
           max(p_now + least(k.retry_after, interval '86400 s')) filter (where k.rests and k.retry_after > interval '0')
      from (select n.channel_id, n.leased_at, n.retry_after, n.error ~ '^\s*(\[RETRYABLE\]\s*)?HTTP (429|503)\y' as rests,
                   case when n.error ~ '^\s*\[(PERMANENT|DISABLE)\]' then 3
                        when n.error ~ '^\s*(\[RETRYABLE\]\s*)?HTTP 429\y' and n.retry_after is not null then 4
                        else 2 end as kind
              from unnest(p_channels, p_leased_ats, p_errors, p_retry_afters) n(channel_id, leased_at, error, retry_after)) k
      cross join lateral (select 1 from menzil.channel c where c.id = k.channel_id and c.protocol is not null offset 0) c
     group by k.channel_id, k.kind order by k.channel_id, k.kind;
  if found then
    perform setval('menzil.failed_at', menzil._microseconds(p_now));
  end if;
end $$;

-- Leases that ended without an answer: of interest only if one of them was a probe.
create or replace function menzil._tell_nothing(p_channels integer[], p_leased_ats timestamptz[], p_now timestamptz) returns void
language plpgsql as $$
begin
  insert into menzil.arrival (generation, channel_id, due_at, news, news_count, news_at)
    select menzil._generation(p_now), u.channel_id, p_now, 4, 1, u.at
      from (select n.channel_id, max(n.leased_at) as at from unnest(p_channels, p_leased_ats) n(channel_id, leased_at) group by n.channel_id) u
      cross join lateral (select g.circuit from menzil.gate g where g.channel_id = u.channel_id offset 0) g
     where g.circuit = 1;
end $$;

-- Brings gates and lanes up to date for somebody who looks, where writing is possible.
create or replace function menzil._catch_up() returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' then
    perform menzil._fold(clock_timestamp(), true, 2000);
  end if;
end $$;
