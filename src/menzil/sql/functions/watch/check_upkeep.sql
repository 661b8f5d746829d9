-- Checks of what keeps the queue running: leases, janitors, schedules, the archive, and what holds PostgreSQL up.

-- An expired lease comes back with the next dequeue; one that does not tells that nobody dequeues.
create or replace function menzil._check_leases() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'leases', case when count(*) > 0 then 'warning' else 'ok' end,
         case when count(*) > 0 then format('%s leases ran out more than a minute ago and were not taken back.', count(*)) else 'No expired lease is left over.' end,
         case when count(*) > 0 then 'Run a worker, or select menzil.recover_stale_messages().' end
    from (select b.ids from menzil.lease_batch b where b.unlock_at < clock_timestamp() - interval '1 minute' order by b.unlock_at limit 100) b
    join menzil.lease l on l.id = any (b.ids) and l.unlock_at < clock_timestamp() - interval '1 minute'
$$;

-- A janitor that is long overdue, or whose last round failed. Those who never had a worker are not missed.
create or replace function menzil._check_janitors() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'janitors', case when q.failed is not null or q.silent is not null then 'warning' else 'ok' end,
         case when q.failed is not null then format('The last round of janitor %s failed: %s', quote_literal(q.failed), q.error)
              when q.silent is not null then format('Janitor %s is overdue since %s.', quote_literal(q.silent), q.since)
              else format('%s janitors did their rounds.', q.count) end,
         case when q.failed is not null then 'It tries again by itself; correct what it met.'
              when q.silent is not null then 'Janitors run inside workers: run one, or select menzil.maintain().' end
    from (select count(*), min(j.name) filter (where j.last_error is not null) as failed,
                 (array_agg(left(j.last_error, 200) order by j.name) filter (where j.last_error is not null))[1] as error,
                 (array_agg(j.name order by j.next_at) filter (where j.next_at < clock_timestamp() - interval '10 minutes'))[1] as silent,
                 date_trunc('second', min(j.next_at)) as since
            from menzil.janitor j) q
$$;

create or replace function menzil._check_schedules() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'schedules', case when q.late is not null or q.failed is not null then 'warning' else 'ok' end,
         case when q.late is not null then format('Schedule %s should have fired more than a minute ago.', quote_literal(q.late))
              when q.failed is not null then format('Schedule %s could not send its last message.', quote_literal(q.failed))
              else 'All schedules fire in time.' end,
         case when q.late is not null then 'Run a worker, or select menzil.schedule_fire_due().'
              when q.failed is not null then 'See last_error in menzil.schedules.' end
    from (select (select s.name from menzil.schedule s where not s.paused and s.next_at < clock_timestamp() - interval '1 minute' order by s.next_at limit 1) as late,
                 (select min(s.name) from menzil.schedule s where not s.paused and s.last_error is not null) as failed) q
$$;

create or replace function menzil._check_archive() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'archive_default', case when q.strays then 'warning' else 'ok' end,
         case when q.strays then 'Archived messages lie in the default partition.' else 'The default partition is empty.' end,
         case when q.strays then 'select menzil.maintain() moves them into the partition of their month.' end
    from (select exists (select 1 from menzil.archive_default) as strays) q
  union all
  select 'archive_partitions', case when not q.now then 'error' when q.ahead < 3 then 'warning' else 'ok' end,
         case when not q.now then 'This month has no archive partition.' else format('%s archive partitions are ready for the next months.', q.ahead) end,
         case when not q.now or q.ahead < 3 then 'select menzil.maintain_archive_partitions(3)' end
    from (select count(*) filter (where m.month_start > menzil._month_of(clock_timestamp())) as ahead,
                 coalesce(bool_or(m.month_start = menzil._month_of(clock_timestamp())), false) as now
            from menzil.archive_month m where m.month_start >= menzil._month_of(clock_timestamp())) q
$$;

-- Old row versions stay as long as somebody's snapshot could see them. Never the words of a query: they may be secret.
create or replace function menzil._check_snapshots() returns table (check_name text, status text, detail text, hint text)
language sql volatile as $$
  select 'snapshots', case when q.age > interval '1 hour' then 'error' when q.age > interval '10 minutes' then 'warning' else 'ok' end,
         case when q.who is null then 'No other transaction holds a snapshot.'
              else format('The oldest snapshot is held for %s by %s.', date_trunc('second', q.age), q.who) end
           || case when hidden.count > 0 then format(' %s sessions cannot be seen: grant pg_read_all_stats to the owner of the schema.', hidden.count) else '' end,
         case when q.age > interval '10 minutes' then q.repair end
    from (select count(*) from pg_stat_activity a where a.query = '<insufficient privilege>' and a.datid is not null) hidden
    left join (
      select s.* from (
        select clock_timestamp() - a.xact_start as age, format('process %s%s', a.pid, ' of ' || nullif(quote_literal(left(a.application_name, 60)), '''''')) as who,
               format('End it in good order, or select pg_terminate_backend(%s): until then old row versions pile up.', a.pid) as repair
          from pg_stat_activity a
         where a.xact_start is not null and (a.backend_xmin is not null or a.backend_xid is not null) and a.pid <> pg_backend_pid()
           and a.backend_type <> 'autovacuum worker'
        union all
        select clock_timestamp() - p.prepared, format('prepared transaction %s', quote_literal(left(p.gid, 60))),
               format('COMMIT PREPARED or ROLLBACK PREPARED %s in database %s.', quote_literal(left(p.gid, 60)), quote_ident(p.database))
          from pg_prepared_xacts p) s
       order by s.age desc limit 1) q on true
$$;
