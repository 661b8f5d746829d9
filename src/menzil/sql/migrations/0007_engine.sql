-- The engine of 0.2: a message row is written once and never moves. docs/decisions/0012-log-runs-and-proofs.md gives the
-- argument; docs/explanation/engine.md shows these tables while one message passes.
--   message    the body of every message, live or ended, in the month it was created in
--   line       what senders and settlers tell consumers: appended, folded into runs and gates, deleted
--   run        which messages wait in a lane, in the order they are leased; written only under the lane's lock
--   lease      which messages are in flight: one row per visit and attempt number; a channel with limits has rows of its own
--   done       how messages ended: one row per settle; the only table that says that a message has ended
-- No CHECK constraints on the way of a message: PostgreSQL parses them anew in every statement.

-- ---------------------------------------------------------------------------------------------------------------------------
-- The switch. A database of 0.1 is converted here in one transaction; its ends are copied already, as far as `menzil migrate`
-- got with menzil._before_0007. The archive becomes the table message without rewriting a row, and live messages go beside it.
do $$ begin perform menzil._refuse_views(); end $$;

-- Schedules first: a transaction that is firing one has then ended, and none begins. It would take the refusal of a table
-- that changes under it for a refused message, and give up its slot.
lock table menzil.schedule in exclusive mode;
lock table menzil.channel in share row exclusive mode;
lock table menzil.setting_value, menzil.message, menzil.ready, menzil.scheduled, menzil.key_queue, menzil.lease, menzil.lease_batch, menzil.arrival, menzil.lane, menzil.gate,
  menzil.used_key, menzil.archive, menzil.archive_month, menzil.janitor, menzil.dead_letter, menzil.attempt in access exclusive mode;

do $$
begin
  while menzil._copy_ends(100000, null) > 0 loop
    null;
  end loop;
end $$;
drop table menzil.ends_copied;

-- Rights that administrators gave to roles of their own are lost with what is dropped below: say so.
do $$
declare
  v_lost text;
begin
  select string_agg(distinct format('%s on menzil.%s', coalesce(r.rolname, 'public'), g.name), ', ') into v_lost
    from (select c.relname as name, c.relowner as owner, a.grantee from pg_class c cross join lateral aclexplode(c.relacl) a
           where c.relnamespace = 'menzil'::regnamespace and (c.relname in ('queue', 'dlq', 'attempts', 'consumers') or c.relname ~ '^archive($|_default$|_\d{4}_\d\d$)')
          union all
          select p.proname, p.proowner, a.grantee from pg_proc p cross join lateral aclexplode(p.proacl) a
           where p.pronamespace = 'menzil'::regnamespace and p.proname in ('message_dequeue', 'message_complete', 'message_fail', 'message_defer', 'message_heartbeat')) g
    left join pg_roles r on r.oid = g.grantee
   where g.grantee <> g.owner and (r.rolname in ('menzil_admin', 'menzil_application', 'menzil_worker', 'menzil_monitor', 'menzil_pipeline')) is not true;
  if v_lost is not null then
    raise notice 'These rights have to be granted again: %', v_lost;
  end if;
end $$;

-- Functions of 0.1. One whose name begins with an underscore is called by menzil alone. A function that a trigger or an object
-- of yours depends on stays, and is replaced. Public functions that have not changed stay, with their rights.
do $$
declare
  v_public constant regprocedure[] := array_remove(array[
    to_regprocedure('menzil.janitor_claim(text,interval,text)'), to_regprocedure('menzil.janitor_done(text,bigint,text)'),
    to_regprocedure('menzil.message_complete(bigint[],bigint[],jsonb[])'), to_regprocedure('menzil.message_heartbeat(bigint[],bigint[],bigint)'),
    to_regprocedure('menzil.message_defer(bigint[],bigint[],timestamptz[],bytea[])'),
    to_regprocedure('menzil.message_dequeue(bigint,integer,text[],text,boolean)'),
    to_regprocedure('menzil.message_fail(bigint[],bigint[],text[],interval[],jsonb[])')], null);
  v_gone text;
begin
  loop
    select string_agg(p.oid::regprocedure::text, ', ') into v_gone from pg_proc p
     where p.pronamespace = 'menzil'::regnamespace and (p.proname like '\_%' or p.oid = any (v_public))
       and p.proowner = (select c.relowner from pg_class c where c.oid = 'menzil.migration'::regclass)
       and not exists (select 1 from pg_depend d where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid);
    exit when v_gone is null;
    execute 'drop function ' || v_gone;
  end loop;
end $$;

-- Views that read what changes; the code makes them anew.
drop view if exists menzil.queue, menzil.dlq, menzil.attempts, menzil.consumers;

-- The tables of 0.1 step aside until their rows have moved, and so do the names of their indexes.
drop table menzil.lane, menzil.lease_batch, menzil.janitor;
drop sequence menzil.arrival_mark, menzil.lane_bytes, menzil.gate_bytes;
do $$
declare
  v_name text;
begin
  foreach v_name in array '{message,scheduled,lease,dead_letter}'::text[] loop
    execute format('alter table menzil.%I rename to %I', v_name, 'old_' || v_name);
  end loop;
  for v_name in
    select c.relname from pg_class c join pg_index i on i.indexrelid = c.oid
     where i.indrelid in ('menzil.old_message'::regclass, 'menzil.old_scheduled'::regclass, 'menzil.old_lease'::regclass, 'menzil.old_dead_letter'::regclass)
  loop
    execute format('alter index menzil.%I rename to %I', v_name, 'old_' || v_name);
  end loop;
  alter sequence menzil.dead_letter_id_seq rename to old_dead_letter_id_seq;
end $$;

-- The months are partitions with the names archive_YYYY_MM: a body is in the archive from the moment it is sent.
do $$
declare
  v_grant record;
begin
  if not exists (select 1 from menzil.archive) and not exists (select 1 from menzil.old_message) then
    drop table menzil.archive;
    delete from menzil.archive_month;
    create table menzil.message (
      id               bigint not null,
      channel_id       integer not null,                 -- no foreign key: its lock would be a shared row
      priority         smallint not null,
      created_at       timestamptz not null,
      scheduled_at     timestamptz,
      expires_at       timestamptz,
      payload          jsonb,                            -- either this
      content          bytea,                            -- or this
      payload_hash     text,
      ordering_key     text,
      idempotency_key  text,
      correlation_id   uuid,
      headers          jsonb,
      metadata         jsonb,
      redrive_of       bigint,
      replay_of        bigint
    ) partition by range (created_at);
    create index message_by_id on menzil.message (id);
    create index message_created on menzil.message using brin (created_at) with (pages_per_range = 64, autosummarize = on);
    create table menzil.archive_default partition of menzil.message default;
    return;
  end if;
  -- The same columns are left of the archive, in the same order. Dropping a column rewrites nothing.
  drop index menzil.archive_feed;
  alter index menzil.archive_id rename to message_by_id;
  alter index menzil.archive_created rename to message_created;
  alter table menzil.archive rename to message;
  alter table menzil.message rename column endpoint_id to channel_id;
  alter table menzil.message drop column status, drop column channel, drop column num_attempts, drop column retry_count, drop column first_leased_at,
    drop column leased_at, drop column ended_at, drop column ended_xid, drop column worker, drop column last_error, drop column state, drop column response;
  -- Readers of the archive read the view of that name, not this table.
  for v_grant in
    select c.oid::regclass as name, a.grantee from pg_class c cross join lateral aclexplode(c.relacl) a
     where (c.oid = 'menzil.message'::regclass or c.oid in (select i.inhrelid from pg_inherits i where i.inhparent = 'menzil.message'::regclass)) and a.grantee <> c.relowner
  loop
    execute format('revoke all on %s from %s', v_grant.name, case v_grant.grantee when 0 then 'public' else v_grant.grantee::regrole::text end);
  end loop;
end $$;

-- waits 0: the one message of its key that may be leased, is leased, or waits for its retry; waits 1: messages behind it.
alter table menzil.key_queue rename column place to waits;

-- A lane is one priority of one channel: the unit that takes turns. Every change of a lane writes a version with a higher
-- v, and readers ask for the highest v first: versions that a held snapshot keeps are never walked over. There is no
-- unique index on lane, because a unique check would walk over them; lane_name makes sure that a lane is born once.
create table menzil.lane_name (
  channel_id  integer not null,
  rank        smallint not null,
  primary key (channel_id, rank)
);
-- Ranks that have a lane. Not unique: an open transaction that uses a rank first must not make others wait.
create table menzil.rank_used (rank smallint not null);
create index rank_used_rank on menzil.rank_used (rank);
create table menzil.lane (
  channel_id  integer not null,
  rank        smallint not null,
  v           bigint not null default 0,
  gated       boolean not null default false,        -- its channel's gate is asked before messages are leased
  push        boolean not null default false,        -- its channel is an endpoint
  name        text not null,                         -- of its channel, which never changes
  head_due    timestamptz,                           -- no run lies below (head_due, head_id)
  head_id     bigint,
  gone        integer not null default 0,            -- how many of the run that starts at the head are leased already
  tail_due    timestamptz,                           -- end of the last run; null: nothing waits
  tail_id     bigint,
  next_at     timestamptz                            -- when the lane may be visited; null: nothing waits, or its gate holds it
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index lane_key on menzil.lane (channel_id, rank, v);
create index lane_turn on menzil.lane (rank, next_at) where next_at is not null;
create index lane_turn_push on menzil.lane (rank, next_at) where push and next_at is not null;

-- One row per visit and attempt number; a channel with limits has rows of its own. (id, attempt) is in at most one
-- row, so (lo_id, attempt) names the row for ever.
create table menzil.lease (
  lo_id       bigint not null,
  attempt     bigint not null,
  hi_id       bigint not null,
  channel_id  integer,                               -- set where the channel has a gate or a size limit
  epoch       integer,                               -- of the gate that counted it; null: not counted
  flags       smallint not null,
  leased_at   timestamptz not null,
  unlock_at   timestamptz not null,
  watch_at    timestamptz not null,                  -- when recovery looks at it: an extended lease keeps it, so a heartbeat is HOT
  worker      text,
  ids         bigint[] not null,
  primary key (lo_id, attempt) include (hi_id)
) with (fillfactor = 70, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
alter table menzil.lease alter column ids set storage external;
create index lease_watch on menzil.lease (watch_at);

create table menzil.scheduled (
  due_at        timestamptz not null,
  id            bigint not null,
  channel_id    integer not null,
  rank          smallint not null,
  place_at      timestamptz not null,                -- position in the lane once it is due
  flags         smallint not null default 0,
  ordering_key  text,
  holds_key     boolean not null default false,      -- a retry keeps its ordering key blocked; a first schedule does not
  primary key (due_at, id)
);
create index scheduled_channel on menzil.scheduled (channel_id, due_at);

-- The working list of dead letters. The body stays where it was sent; a month with dead letters is not dropped.
create table menzil.dead_letter (
  id                   bigint generated always as identity primary key,
  original_message_id  bigint not null unique,
  channel_id           integer not null,
  created_at           timestamptz not null,         -- of the message: finds its month
  status               text not null default 'failed' check (status in ('failed', 'redriven')),
  failed_at            timestamptz not null,
  redriven_at          timestamptz,
  redriven_id          bigint,
  num_attempts         bigint not null,
  last_error           text,
  blocks_key           boolean not null default false    -- on_dead = 'block': its ordering key waits for a decision
);
create index dead_letter_channel on menzil.dead_letter (channel_id, id);
create index dead_letter_failed on menzil.dead_letter (failed_at);
create index dead_letter_waiting on menzil.dead_letter (channel_id) where status = 'failed';
create index dead_letter_blocking on menzil.dead_letter (channel_id) where blocks_key;
create index dead_letter_created on menzil.dead_letter (created_at);

-- Set when a concurrency limit begins: leases from before are not counted in the gate and are looked for until they are over.
alter table menzil.gate add column counts_from timestamptz;

-- The lane of all rows of a bulk send; null: they go to several.
alter type menzil.bulk add attribute rank smallint;

-- ---------------------------------------------------------------------------------------------------------------------------
-- The rows of 0.1 move. Nothing here does anything in a database that had none.

insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, content, payload_hash, ordering_key, idempotency_key,
    correlation_id, headers, metadata, redrive_of, replay_of)
  select m.id, m.channel_id, 10 - m.rank, m.created_at, m.scheduled_at, m.expires_at, m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key,
         m.correlation_id, m.headers, m.metadata, m.redrive_of, m.replay_of
    from menzil.old_message m order by m.id;

-- Dead letters carried their bodies, so some are older than the archive: those bodies become messages again. Readers of the
-- change feed had their ends long ago; with transaction id 0 they lie before every reader.
create unlogged table menzil.old_only_dead as
  select d.original_message_id as id from menzil.old_dead_letter d where not exists (select 1 from menzil.message m where m.id = d.original_message_id);
insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, content, payload_hash, ordering_key, idempotency_key,
    correlation_id, headers, metadata, redrive_of, replay_of)
  select d.original_message_id, d.channel_id, d.priority, d.created_at, d.scheduled_at, d.expires_at, d.payload, d.content, d.payload_hash, d.ordering_key,
         d.idempotency_key, d.correlation_id, d.headers, d.metadata, d.redrive_of, d.replay_of
    from menzil.old_dead_letter d join menzil.old_only_dead o on o.id = d.original_message_id order by 1;
insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker, responses)
  select o.id, o.id, 1, 'failed', d.num_attempts, t.leased_at, d.failed_at, '0', t.worker, case when t.response is not null then array[t.response] end
    from menzil.old_only_dead o join menzil.old_dead_letter d on d.original_message_id = o.id
    left join menzil.attempt t on t.message_id = o.id and t.attempt = d.num_attempts
   where not exists (select 1 from menzil.done e where e.lo_id > o.id - 4096 and e.lo_id <= o.id and e.hi_id >= o.id and (e.ids is null or o.id = any (e.ids)))
   order by 1;
insert into menzil.returned (id, created_at, attempts, retry_count, place_at, first_leased_at, last_error, state)
  select o.id, d.created_at, d.num_attempts, d.retry_count, coalesce(d.scheduled_at, d.created_at),
         (select min(t.leased_at) from menzil.attempt t where t.message_id = o.id), d.last_error, d.state
    from menzil.old_only_dead o join menzil.old_dead_letter d on d.original_message_id = o.id order by 1
  on conflict do nothing;
insert into menzil.dead_letter (id, original_message_id, channel_id, created_at, status, failed_at, redriven_at, redriven_id, num_attempts, last_error, blocks_key)
  overriding system value
  select d.id, d.original_message_id, d.channel_id, d.created_at, d.status, d.failed_at, d.redriven_at, d.redriven_id, d.num_attempts, d.last_error, d.blocks_key
    from menzil.old_dead_letter d order by d.id;
select setval('menzil.dead_letter_id_seq', s.last_value, s.is_called) from menzil.old_dead_letter_id_seq s;

-- Messages that came back. A retry returns to the position of its first due time, a voluntary wait to the time it chose, and
-- a message whose time was changed by hand stays where it is.
insert into menzil.returned (id, created_at, attempts, retry_count, place_at, due_at, first_leased_at, lost, last_error, state)
  select m.id, m.created_at, m.attempts, m.retry_count,
         case when m.attempts = 0 or t.outcome = 'deferred' then m.due_at else coalesce(m.scheduled_at, m.created_at) end,
         m.due_at, m.first_leased_at, coalesce(t.outcome = 'recovered', false), m.last_error, m.state
    from menzil.old_message m left join menzil.attempt t on t.message_id = m.id and t.attempt = m.attempts
   where m.attempts > 0 or m.state is not null or m.last_error is not null or m.due_at <> coalesce(m.scheduled_at, m.created_at)
   order by m.id;

-- What the tables of the lanes have to know of each live message: its position, its flags and whether its gate is asked.
create unlogged table menzil.old_live as
  select m.id, m.channel_id, m.rank, m.ordering_key, coalesce(r.place_at, m.scheduled_at, m.created_at) as place_at,
         (case when r.id is not null or m.scheduled_at is not null then 1 else 0 end | case when m.expires_at is not null then 2 else 0 end
           | case when m.ordering_key is not null then 4 else 0 end)::smallint as flags,
         c.name, c.protocol is not null as push,
         c.protocol is not null or c.paused or not c.enabled or c.max_concurrency is not null or c.release_interval_ms > 0 or c.max_size is not null as gated
    from menzil.old_message m join menzil.channel c on c.id = m.channel_id left join menzil.returned r on r.id = m.id;
create index old_live_id on menzil.old_live (id);
analyze menzil.old_live;

insert into menzil.run (channel_id, rank, due_at, first_id, last_due, last_id, n, flags, ids)
  select q.channel_id, q.rank, q.dues[1], q.ids[1], q.dues[q.n], q.ids[q.n], q.n, q.flags, case when not q.in_a_row then q.ids end
    from (select w.channel_id, w.rank, array_agg(w.place_at order by w.n) as dues, array_agg(w.id order by w.n) as ids, count(*)::integer as n,
                 bit_or(w.flags) as flags, min(w.id - w.n) = max(w.id - w.n) as in_a_row
            from (select l.channel_id, l.rank, l.place_at, l.id, l.flags, row_number() over (partition by l.channel_id, l.rank order by l.place_at, l.id) as n
                    from menzil.ready y join menzil.old_live l on l.id = y.id) w
           group by w.channel_id, w.rank, (w.n - 1) / 256) q
   order by 1, 2, 3, 4;
insert into menzil.lane (channel_id, rank, gated, push, name, head_due, head_id, tail_due, tail_id, next_at)
  select distinct on (h.channel_id, h.rank) h.channel_id, h.rank, l.gated, l.push, l.name, h.due_at, h.first_id, t.last_due, t.last_id, clock_timestamp()
    from menzil.run h join menzil.old_live l on l.id = h.first_id
    cross join lateral (select t.last_due, t.last_id from menzil.run t where t.channel_id = h.channel_id and t.rank = h.rank
                         order by t.due_at desc, t.first_id desc limit 1) t
   order by h.channel_id, h.rank, h.due_at, h.first_id;
insert into menzil.lane_name (channel_id, rank) select l.channel_id, l.rank from menzil.lane l order by 1, 2;
insert into menzil.rank_used (rank) select distinct l.rank from menzil.lane l order by 1;

insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key, holds_key)
  select s.due_at, s.id, s.channel_id, s.rank, l.place_at, l.flags, s.ordering_key, s.holds_key
    from menzil.old_scheduled s join menzil.old_live l on l.id = s.id order by 1, 2;

-- Leases of one call, as far as heartbeats have left them alike, become one row. Gates count anew what is in flight.
insert into menzil.lease (lo_id, attempt, hi_id, channel_id, epoch, flags, leased_at, unlock_at, watch_at, worker, ids)
  select min(o.id), o.attempt, max(o.id), q.channel_id, min(q.epoch), bit_or(l.flags), o.leased_at, o.unlock_at, o.unlock_at, o.worker, array_agg(o.id order by o.id)
    from menzil.old_lease o join menzil.old_live l on l.id = o.id join menzil.gate g on g.channel_id = l.channel_id
    cross join lateral (select case when l.gated then l.channel_id end as channel_id, case when g.max_concurrency is not null then g.epoch + 1 end as epoch) q
   group by q.channel_id, o.attempt, o.leased_at, o.unlock_at, o.worker order by 1;
update menzil.gate g set epoch = g.epoch + 1,
    in_flight = case when g.max_concurrency is null then 0 else (select count(*) from menzil.old_lease o where o.channel_id = g.channel_id) end;

-- News of endpoints that no consumer has had yet, and ordering keys that need a head.
insert into menzil.line (channel_id, due_at, news, news_count, news_at, wait_until)
  select a.channel_id, a.due_at, a.news, a.news_count, a.news_at, a.wait_until from menzil.arrival a where a.news is not null order by a.xid, a.due_at;
insert into menzil.line (channel_id, ordering_key) select k.channel_id, k.ordering_key from menzil.key_queue k group by 1, 2 having min(k.waits) = 1 order by 1, 2;

insert into menzil.expiring (expires_at, id, created_at)
  select m.expires_at, m.id, m.created_at from menzil.old_message m where m.expires_at is not null order by 1, 2;

-- A key is held by a live message, or by a completed one until its retention is over. Without archive_completed the end was
-- kept nowhere but in the key: it is written down, because a send asks for it.
insert into menzil.key (channel_id, idempotency_key, message_id, payload_hash, created_at)
  select m.channel_id, m.idempotency_key, m.id, m.payload_hash, m.created_at from menzil.old_message m where m.idempotency_key is not null order by 1, 2;
with used as materialized (
  select u.*, e.status, u.until_at - s.idempotency_retention * interval '1 s' as ended_at,
         (select m.created_at from menzil.message m where m.id = u.message_id) as created_at
    from menzil.used_key u cross join menzil.setting_value s
    left join lateral (select e.status from menzil.done e where e.lo_id > u.message_id - 4096 and e.lo_id <= u.message_id and e.hi_id >= u.message_id
                          and (e.ids is null or u.message_id = any (e.ids)) limit 1) e on true
   where u.until_at > clock_timestamp()
), ended as (
  insert into menzil.done (lo_id, hi_id, n, status, attempt, ended_at, ended_xid)
    select u.message_id, u.message_id, 1, 'completed', 1, u.ended_at, '0' from used u where u.status is null order by 1
)
insert into menzil.key (channel_id, idempotency_key, message_id, payload_hash, created_at)
  select u.channel_id, u.idempotency_key, u.message_id, u.payload_hash, coalesce(u.created_at, u.ended_at) from used u
   where coalesce(u.status, 'completed') = 'completed' order by 1, 2
  on conflict do nothing;

-- Since when completed messages do not stay in the archive, and the oldest transaction that was open then.
alter table menzil.setting_value add column archive_off_at timestamptz, add column archive_off_xid xid8;
update menzil.setting_value set archive_off_at = clock_timestamp(), archive_off_xid = pg_snapshot_xmin(pg_current_snapshot()) where not archive_completed;

create index channel_sized on menzil.channel (id) where max_size is not null;


-- How many messages have ended, and how many ids are gone: their messages ended, or their senders rolled back. A row is true of the
-- transactions before counted_to, but for late ones; the newest is used. The register ended_count holds gone for senders.
create table menzil.tally (
  id          bigint generated always as identity primary key,
  counted_to  xid8 not null,
  late        xid8[] not null,
  ended       bigint not null,
  gone        bigint not null,
  writer      xid[] not null                         -- of this row: after a restore it is another
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
insert into menzil.tally (counted_to, late, ended, gone, writer)
  select pg_snapshot_xmax(pg_current_snapshot()), array(select pg_snapshot_xip(pg_current_snapshot()) union select pg_current_xact_id()), g.gone, g.gone,
         array[pg_current_xact_id()::xid]
    from (select greatest(0, coalesce(pg_sequence_last_value('menzil.message_id'), 0) - (select count(*) from menzil.old_message)) as gone) g;
select setval('menzil.ended_count', t.gone) from menzil.tally t;
drop table menzil.old_live, menzil.old_only_dead, menzil.old_message, menzil.old_scheduled, menzil.old_lease, menzil.old_dead_letter, menzil.ready, menzil.arrival, menzil.used_key;
