-- How the queue is: one row per check, with what to do about it. Cheap, reads only, no payload.
create or replace function menzil.health_check() returns table (check_name text, status text, detail text, hint text)
language plpgsql stable security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
begin
  return query
    select 'schema_version', 'ok', format('The schema is at version %s.', menzil.schema_version()), null::text
    union all select c.* from menzil._check_backlog() c
    union all select c.* from menzil._check_waiting() c
    union all select c.* from menzil._check_workers() c
    union all select c.* from menzil._check_leases() c
    union all select c.* from menzil._check_janitors() c
    union all select c.* from menzil._check_schedules() c
    union all select c.* from menzil._check_circuits() c
    union all select c.* from menzil._check_dead_letters() c
    union all select c.* from menzil._check_blocked_keys() c
    union all select c.* from menzil._check_archive() c
    union all select c.* from menzil._check_snapshots() c;
end $$;

-- The queue against max_queue_size. The number is the one that sends ask: never less than what is there.
create or replace function menzil._check_backlog() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'backlog', case when q.most = 0 then 'ok' when q.depth >= q.most then 'error' when q.depth >= 0.8 * q.most then 'warning' else 'ok' end,
         case when q.most = 0 then format('At most %s messages are in the queue, which has no limit.', q.depth)
              else format('At most %s of %s messages are in the queue.', q.depth, q.most) end,
         case when q.most > 0 and q.depth >= 0.8 * q.most then 'Run more workers, or raise the limit with menzil.set_setting(''max_queue_size'', ...).' end
    from (select greatest(menzil._register('menzil.message_id') - menzil._register('menzil.ended_count'), 0) as depth, s.max_queue_size as most
            from menzil.setting_value s) q
$$;

-- Somebody should have leased them by now, unless their channel is paused or its circuit open.
create or replace function menzil._check_waiting() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'oldest_message', case when q.age > interval '1 hour' then 'error' when q.age > interval '5 minutes' then 'warning' else 'ok' end,
         case when q.name is null then 'No message waits that could be leased.'
              else format('The oldest message that could be leased has waited %s, in channel %s.', date_trunc('second', q.age), quote_literal(q.name)) end,
         case when q.age > interval '5 minutes' then 'Run a worker for that channel; menzil.get_worker_status() says who works.' end
    from (select 1) one
    left join (select clock_timestamp() - w.since_at as age, w.name from menzil._waiting(100, clock_timestamp()) w
                where w.since_at is not null and not w.held order by w.since_at limit 1) q on true
$$;

create or replace function menzil._check_workers() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'workers', case when q.lost > 0 then 'warning' else 'ok' end,
         format('%s at work, %s lost, %s stopped.', q.alive, q.lost, q.stopped),
         case when q.lost > 0 then format('See why %s went silent; its messages are taken back when their leases run out.', q.name) end
    from (select count(*) filter (where s.status in ('alive', 'stopping')) as alive, count(*) filter (where s.status = 'lost') as lost,
                 count(*) filter (where s.status = 'stopped') as stopped, min(s.worker) filter (where s.status = 'lost') as name
            from menzil.get_worker_status() s) q
$$;

create or replace function menzil._check_circuits() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'circuits', case when count(*) > 0 then 'warning' else 'ok' end,
         case when count(*) > 0 then format('%s circuits are not closed: %s.', count(*), string_agg(q.name, ', ') filter (where q.n <= 5)) else 'All circuits are closed.' end,
         case when count(*) > 0 then 'See menzil.get_endpoint_health(); menzil.reset_circuit_breaker(name) closes one when its endpoint is well again.' end
    from (select c.name, row_number() over (order by c.name) as n from menzil.channel c join menzil.gate g on g.channel_id = c.id
           where c.protocol is not null and c.dropped_at is null and g.circuit <> 0) q
$$;

create or replace function menzil._check_dead_letters() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'dead_letters', case when q.count > 0 then 'warning' else 'ok' end,
         format('%s dead letters wait for a decision.', case when q.count > 10000 then 'More than 10000' when q.count = 0 then 'No' else q.count::text end),
         case when q.count > 0 then 'See menzil.dlq_summary(); send them again with menzil.redrive_endpoint(name), or let menzil.cleanup_dlq() age them out.' end
    from (select count(*) from (select 1 from menzil.dead_letter d where d.status = 'failed' limit 10001) d) q
$$;

create or replace function menzil._check_blocked_keys() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'ordering_keys', case when count(*) > 0 then 'warning' else 'ok' end,
         case when count(*) > 0 then format('%s ordering keys wait behind a dead letter, the first in channel %s.', count(*), quote_literal(min(q.name)))
              else 'No ordering key is blocked.' end,
         case when count(*) > 0 then 'Send the dead letter again with menzil.redrive_message(id), or free its key with menzil.message_cancel(id).' end
    from (select c.name from (select d.channel_id from menzil.dead_letter d where d.blocks_key limit 10000) d join menzil.channel c on c.id = d.channel_id) q
$$;
