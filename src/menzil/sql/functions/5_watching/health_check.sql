-- How the queue is: one row per check, with what to do about it. Cheap, reads only, no payload. A check says what the trouble is,
-- or null; level and hint count only with a trouble.
create or replace function menzil.health_check() returns table (check_name text, status text, detail text, hint text)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
begin
  perform 1 from menzil.message m where false;   -- the parent is locked before a partition of it, as ALTER TABLE does it
  return query
  select c.name, case when c.trouble is null then 'ok' else c.level end, coalesce(c.trouble, c.fine), case when c.trouble is not null then c.hint end from (
    select 'schema_version' as name, null as level, null as trouble, format('The schema is at version %s.', w.installed) as fine, null as hint from menzil.schema_window() w
    union all
    select 'copy', 'warning', menzil.copy_notice(), 'This database is no copy.', 'Run `menzil adopt`, or select menzil.adopt(), if it is to be live.'
    union all
    select 'standby', 'warning',
           case when s.behind then format('This server is a standby, and the newest transaction that it replayed is of %s: all that it shows is of then.', menzil._time_text(s.at)) end,
           case when s.standby then format('This server is a standby; the newest transaction that it replayed is of %s.', coalesce(menzil._time_text(s.at), 'before its start'))
                else 'This server is no standby.' end,
           'Ask the primary for what is now; on the standby see pg_stat_wal_receiver and pg_is_wal_replay_paused().'
      from menzil._replay_seen('1 minute') s
    union all
    -- The queue against max_queue_size. The number is the one that sends ask: never less than what is there.
    select 'backlog', case when q.depth >= q.most then 'error' else 'warning' end,
           case when q.most > 0 and q.depth >= 0.8 * q.most then format('At most %s of %s messages are in the queue.', q.depth_text, q.most_text) end,
           case when q.most = 0 then format('At most %s messages are in the queue, which has no limit.', q.depth_text)
                else format('At most %s of %s messages are in the queue.', q.depth_text, q.most_text) end,
           'Run more workers, or raise the limit with menzil.set_setting(''max_queue_size'', ...).'
      from (select q.*, to_char(q.depth, 'FM999,999,999,999') as depth_text, to_char(q.most, 'FM999,999,999,999') as most_text
              from (select greatest(t.sent - t.gone, 0) as depth, s.max_queue_size as most from menzil.setting_value s, menzil._told_totals() t) q) q
    union all
    -- A consumer should have leased it by now, unless its channel is paused or disabled, its circuit is not closed, or its
    -- endpoint asked for a rest. Where the limits of the channel are used up, another worker would not help.
    select 'oldest_message', case when q.age > interval '1 hour' then 'error' else 'warning' end, case when q.age > interval '5 minutes' then q.text end,
           coalesce(q.text, 'No message waits that could be leased.'),
           coalesce('If it may go faster, raise its limit: ' || menzil._command('channel set', q.name, ' ' || q.knob), 'Run a worker for that channel; menzil.get_worker_status() says who works.')
      from (select 1) one
      left join (select w.age, w.name, f.knob, format('The oldest message that could be leased has waited %s, in channel %s%s.', menzil._span_text(w.age), quote_literal(menzil._shown(w.name)),
                                                      case f.knob when '--release-count N' then ', which is at its rate limit' when '--max-concurrency N' then ', whose slots are all taken' end)
                                               || case when w.others <> '{}' then format(' Messages have waited for more than 5 minutes in %s%s, too.', array_to_string(w.others, ', '),
                                                                                                  ' and ' || nullif(w.late - 1 - cardinality(w.others), 0) || ' more') else '' end as text
                   from (select max(w.age) as age, (array_agg(w.name order by w.age desc))[1] as name, (array_agg(w.channel_id order by w.age desc))[1] as channel_id,
                                (array_agg(quote_literal(menzil._shown(w.name)) order by w.age desc) filter (where w.age > interval '5 minutes'))[2 :] as others, max(w.late) as late
                           from (select v_now - w.since_at as age, w.name, w.channel_id, count(*) filter (where w.since_at < v_now - interval '5 minutes') over () as late
                                   from menzil._waiting(100, v_now, 1048576) w where w.since_at is not null and not w.held order by w.since_at limit 6) w
                         having count(*) > 0) w
                   left join lateral (select case when r.next_at is not null then '--release-count N' when g.in_flight >= g.max_concurrency then '--max-concurrency N' end as knob
                                        from menzil._gates_seen(array[w.channel_id], v_now) g cross join lateral menzil._room_seen(g, v_now) r) f on true) q on true
    union all
    select 'workers', 'warning', case when q.lost > 0 then q.text end, q.text,
           format('See why %s went silent; its messages are taken back when their leases run out.', q.name)
      from (select s.lost, s.name, format('%s at work, %s lost, %s stopped.', s.alive, s.lost, s.stopped) as text
              from (select count(*) filter (where s.status in ('alive', 'stopping')) as alive, count(*) filter (where s.status = 'lost') as lost,
                           count(*) filter (where s.status = 'stopped') as stopped, min(s.worker) filter (where s.status = 'lost') as name
                      from menzil.get_worker_status() s) s) q
    union all
    -- An expired lease comes back with the next dequeue; one that does not tells that nothing dequeues.
    select 'leases', 'warning', 'The leases of ' || nullif(sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)), 0) || ' messages ran out more than a minute ago and were not taken back.',
           'No expired lease is left over.', 'Run a worker, or select menzil.recover_stale_messages(). If they stay, select menzil.rebuild().'
      from menzil.lease l where l.unlock_at < v_now - interval '1 minute'
    union all
    -- Some live messages, and lines that the newest proof says are folded: no dequeue looks for them. Counts up to 1,000. A proof
    -- that does not name its own transaction as late comes from another cluster, by a restored dump, and is not used.
    select 'places', 'error',
           case when p.lost > 0 then format('%s of %s live messages that were looked at have no place in the queue, message %s first.', p.lost, p.seen, p.first)
                when l.stuck > 0 then format('%s lines of the log are older than the newest proof and not named in it: no dequeue finds them.', l.stuck)
                when t.held > 0 then format('%s lanes hold messages and get no turn although their gate has room, one of channel %s.', t.held, quote_literal(menzil._shown(t.first))) end,
           format('%s live messages were looked at: each has its place.', p.seen), 'select menzil.rebuild() gives every live message its place.'
      from menzil._check_places() p
      cross join menzil._check_turns() t
      cross join (select count(*) as stuck from (
                    select 1 from (select k.folded_to, k.late, k.xmin from menzil.look k order by k.id desc limit 1) k
                      join menzil.line n on n.xid < k.folded_to and n.xid <> all (k.late)
                     where k.folded_to <= pg_snapshot_xmax(pg_current_snapshot()) and k.xmin = any (k.late::xid[]) limit 1000) n) l
    union all
    -- A job whose last round failed, or that ran before and is long overdue. A job that never ran is not missed: a queue that
    -- serves dequeues without a worker does what is urgent in the dequeues.
    select 'jobs', 'warning',
           case when q.failed is not null then format('The last round of job %s failed: %s', quote_literal(q.failed), q.error)
                when q.silent is not null then format('Job %s is overdue since %s.', quote_literal(q.silent), q.since) end,
           case q.count when 0 then 'No job has run yet: jobs run inside workers.' when 1 then 'One job did its rounds.' else format('%s jobs did their rounds.', q.count) end,
           case when q.failed is not null then 'It is tried again by itself; correct what it met. The view menzil.jobs shows every job.'
                else 'Jobs run inside workers: run one, or call menzil.run_jobs().' end
      from (select count(*) filter (where j.last_run_at is not null), min(j.name) filter (where j.last_error is not null) as failed,
                   (array_agg(left(j.last_error, 200) order by j.name) filter (where j.last_error is not null))[1] as error,
                   (array_agg(j.name order by j.next_at, j.name)
                      filter (where j.last_run_at is not null and j.next_at < v_now - interval '10 minutes'))[1] as silent,
                   menzil._time_text(min(j.next_at) filter (where j.last_run_at is not null)) as since
              from menzil.job j) q
    union all
    select 'pulse', 'warning',
           case when s.behind_since < v_now - interval '1 minute' then format('The pulse is behind since %s: more is sent and ended than it counts.', menzil._time_text(s.behind_since)) end,
           'The pulse counts what is sent and what ends.', 'It goes on by itself; call menzil.run_jobs() more often, or run one more worker.'
      from (select 1) one left join menzil.pulse_state s on true
    union all
    select 'schedules', 'warning',
           coalesce('Schedule ' || quote_literal(q.late) || ' should have fired more than a minute ago.',
                    'Schedule ' || quote_literal(q.failed) || ' could not send its last message.'),
           'All schedules fire in time.',
           case when q.late is not null then 'Run a worker, or select menzil.schedule_fire_due().' else 'See last_error in menzil.schedules.' end
      from (select (select s.name from menzil.schedule s where not s.paused and s.next_at < v_now - interval '1 minute' order by s.next_at limit 1) as late,
                   (select min(s.name) from menzil.schedule s where not s.paused and s.last_error is not null) as failed) q
    union all
    select 'circuits', 'warning',
           case when count(*) > 0 then format('%s not closed: %s.', case count(*) when 1 then 'One circuit is' else format('%s circuits are', count(*)) end, string_agg(q.name, ', ') filter (where q.n <= 5)) end,
           'All circuits are closed.', 'See menzil.get_endpoint_health(); menzil.reset_circuit_breaker(name) closes one when its endpoint is well again.'
      from (select c.name, row_number() over (order by c.name) as n from menzil.channel c
              join menzil._gates_as_told() g on g.channel_id = c.id where c.dropped_at is null and g.circuit <> 0) q
    union all
    select 'dead_letters', 'warning',
           case when q.count > 10000 then 'More than 10,000 dead letters wait' when q.count > 1 then q.count || ' dead letters wait'
                when q.count = 1 then 'One dead letter waits' end || ' for a decision.',
           'No dead letters wait for a decision.',
           'See menzil.dlq_summary(); send them again with menzil.redrive_endpoint(name), or let menzil.cleanup_dlq() age them out.'
      from (select count(*) from (select 1 from menzil.dead_letter d where d.status = 'failed' limit 10001) d) q
    union all
    select 'ordering_keys', 'warning',
           case when count(*) > 0 then case count(*) when 1 then 'One ordering key waits' else format('%s ordering keys wait', count(*)) end ||
             format(' behind a dead letter, the first in channel %s.', quote_literal(min(c.name))) end,
           'No ordering key is blocked.', 'Send the dead letter again with menzil.redrive_message(id), or free its key with menzil.message_cancel(id).'
      from (select d.channel_id from menzil.dead_letter d where d.blocks_key limit 10000) d join menzil.channel c on c.id = d.channel_id
    union all
    select 'bridges', 'warning',
           case when b.growing_since < v_now - interval '1 minute' and b.processes > 0 and b.last_error is null
                  then format('Bridge %s falls behind: more and more records wait in its source, now %s.', quote_literal(b.name), b.lag)
                when b.processes > 0 then format('Bridge %s takes no records: %s', quote_literal(b.name), b.last_error)
                when b.name is not null then format('Bridge %s is not run by any process.', quote_literal(b.name)) end,
           case when exists (select 1 from menzil.bridge) then 'All bridges are at work, or paused.' else 'There are no bridges.' end,
           'Run it with `menzil bridge run NAME`, or pause it with menzil.bridge_pause(name); menzil.bridges shows all of them.'
      from (select 1) one left join (
             select b.* from menzil.bridges b where not b.paused
               and (b.processes = 0 or b.last_error is not null or b.growing_since < v_now - interval '1 minute') order by b.name limit 1) b on true
    union all
    select 'archive_default', 'warning',
           case when exists (select 1 from menzil.archive_default) then 'Messages lie in the default partition: the partition of their month is missing.' end,
           'The default partition is empty.',
           'select menzil.maintain_archive_partitions(3), menzil.archive_completed_messages(0) moves them into the partition of their month.'
    union all
    select 'archive_partitions', case when q.now then 'warning' else 'error' end,
           case when not q.now then 'This month has no archive partition.' when q.ahead < 3 then q.text end, q.text,
           'select menzil.maintain_archive_partitions(3)'
      from (select m.*, format('%s archive partitions are ready for the next months.', m.ahead) as text
              from (select count(*) filter (where m.month_start > menzil._month_of(v_now)) as ahead,
                           coalesce(bool_or(m.month_start = menzil._month_of(v_now)), false) as now
                      from menzil.archive_month m where m.month_start >= menzil._month_of(v_now)) m) q
    union all
    -- Old row versions stay as long as a snapshot could see them. The text of a query is never shown: it may hold a secret.
    select 'snapshots', case when q.age > interval '1 hour' then 'error' else 'warning' end, case when q.age > interval '10 minutes' then q.text end,
           q.text, q.repair
      from (select s.age, s.repair,
                   case when s.who is null then 'No other transaction holds a snapshot.'
                        else format('The oldest snapshot is held for %s by %s.', menzil._span_text(s.age), s.who) end
                   || case when hidden.count = 0 then ''
                           else format(' %s sessions cannot be seen: grant pg_read_all_stats to the owner of the schema.', hidden.count) end as text
              from (select count(*) from pg_stat_activity a where a.query = '<insufficient privilege>' and a.datid is not null) hidden
              left join (
                select v_now - a.xact_start as age,
                       format('process %s%s', a.pid, ' of ' || nullif(quote_literal(left(a.application_name, 60)), '''''')) as who,
                       format('End it in good order, or select pg_terminate_backend(%s): until then old row versions pile up.', a.pid) as repair
                  from pg_stat_activity a
                 where a.xact_start is not null and (a.backend_xmin is not null or a.backend_xid is not null) and a.pid <> pg_backend_pid()
                   and a.backend_type <> 'autovacuum worker'
                union all
                select v_now - p.prepared, format('prepared transaction %s', quote_literal(left(p.gid, 60))),
                       format('COMMIT PREPARED or ROLLBACK PREPARED %s in database %s.', quote_literal(left(p.gid, 60)), quote_ident(p.database))
                  from pg_prepared_xacts p
                 order by 1 desc limit 1) s on true) q
  ) c;
end $$;
