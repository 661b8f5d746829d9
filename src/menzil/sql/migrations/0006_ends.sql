-- The first half of the engine of 0.2, beside the engine of 0.1, which goes on working: where ends are kept, and a function
-- that copies the ends of the archive there in short transactions. What it has copied, migration 0007 need not copy while
-- all others wait.

-- No row spans more than 4096 ids, so the end of one message is found among its neighbours.
create table menzil.done (
  lo_id      bigint not null,
  hi_id      bigint not null,
  n          integer not null,
  status     text not null,                          -- completed, failed, expired or cancelled
  attempt    bigint not null,
  leased_at  timestamptz,
  ended_at   timestamptz not null,
  ended_xid  xid8 not null,
  worker     text,
  ids        bigint[],                               -- ascending; null: lo_id .. hi_id
  responses  jsonb[]                                 -- what the other side answered, one per id; null: nothing was kept
) with (toast_tuple_target = 8160);
alter table menzil.done alter column ids set storage external;
create index done_id on menzil.done (lo_id, hi_id);
create index done_feed on menzil.done (ended_xid);

-- Messages that were leased and came back, or failed: what the body does not say of them. The row stays when they end.
create table menzil.returned (
  id               bigint primary key,
  created_at       timestamptz not null,             -- of the message: finds its month
  attempts         bigint not null,                  -- leases granted so far; only grows: the fencing token
  retry_count      integer not null default 0,       -- failures counted against the retry budget
  place_at         timestamptz not null,             -- its position in the lane: the first due time, or what a defer chose
  due_at           timestamptz,                      -- when it waits for its next try; null: it ended
  first_leased_at  timestamptz,
  lost             boolean not null default false,   -- the last lease ran out: the message may have killed its worker
  last_error       text,
  state            bytea
);

-- How far the archive is copied, in the order of the change feed. Migration 0007 drops it, and the functions below.
create table menzil.ends_copied (
  only_row  boolean primary key default true check (only_row),
  xid       xid8 not null,
  id        bigint not null
);
insert into menzil.ends_copied (xid, id) values ('0', 0);

-- Copies the ends of up to p_limit archived messages, of transactions before p_until; null: of all. Messages that one
-- transaction ended alike share a row of done. Returns how many messages were copied.
create function menzil._copy_ends(p_limit integer, p_until xid8) returns integer
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_from menzil.ends_copied;
  v_last record;
begin
  select c.* into v_from from menzil.ends_copied c for update;
  with part as materialized (
    select a.id, a.status, a.num_attempts, a.retry_count, a.created_at, a.scheduled_at, a.first_leased_at, a.leased_at, a.ended_at, a.ended_xid, a.worker,
           a.last_error, a.state, a.response
      from menzil.archive a
     where (a.ended_xid, a.id) > (v_from.xid, v_from.id) and a.ended_xid < coalesce(p_until, '18446744073709551615')
     order by a.ended_xid, a.id limit p_limit
  ), ended as (
    insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker, ids, responses)
      select min(p.id), max(p.id), count(*), p.status, p.num_attempts, p.leased_at, p.ended_at, p.ended_xid, p.worker,
             case when max(p.id) - min(p.id) <> count(*) - 1 then array_agg(p.id order by p.id) end,
             case when count(p.response) > 0 then array_agg(p.response order by p.id) end
        from part p group by p.ended_xid, p.id >> 12, p.status, p.num_attempts, p.leased_at, p.ended_at, p.worker
       order by p.ended_xid, min(p.id)
  ), came_back as (
    insert into menzil.returned (id, created_at, attempts, retry_count, place_at, first_leased_at, last_error, state)
      select p.id, p.created_at, p.num_attempts, p.retry_count, coalesce(p.scheduled_at, p.created_at), p.first_leased_at, p.last_error, p.state from part p
       where p.status = 'failed' or p.retry_count > 0 or p.last_error is not null or p.state is not null or p.first_leased_at is distinct from p.leased_at
       order by p.id
  )
  select count(*)::integer as n, (array_agg(p.ended_xid order by p.ended_xid desc, p.id desc))[1] as xid,
         (array_agg(p.id order by p.ended_xid desc, p.id desc))[1] as id
    into v_last from part p;
  if v_last.n > 0 then
    update menzil.ends_copied c set xid = v_last.xid, id = v_last.id;
  end if;
  return v_last.n;
end $$;

-- Views of yours over relations that 0007 replaces. PostgreSQL would refuse to drop these relations and hint at CASCADE, which
-- would drop your views.
create function menzil._refuse_views() returns void
language plpgsql stable as $$
declare
  v_found text[];
begin
  select array_agg(format('View %I.%I reads menzil.%I, which this migration replaces.', f.nspname, f.relname, f.read) order by f.nspname, f.relname, f.read)
    into v_found
    from (select distinct n.nspname, v.relname, t.relname as read
            from pg_class t join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = t.oid and d.classid = 'pg_rewrite'::regclass
            join pg_rewrite w on w.oid = d.objid join pg_class v on v.oid = w.ev_class join pg_namespace n on n.oid = v.relnamespace
           where t.relnamespace = 'menzil'::regnamespace and v.relnamespace <> t.relnamespace
             and t.relname ~ '^(queue|dlq|attempts|consumers|archive|archive_default|archive_\d{4}_\d\d|message|ready|scheduled|lease|lease_batch|lane|arrival|used_key|dead_letter|janitor)$') f;
  if v_found is not null then
    raise exception using errcode = '2BP01', message = array_to_string(v_found, ' '),
      hint = case when cardinality(v_found) = 1 then 'drop it, run `menzil migrate` again, and create it anew'
                  else 'drop them, run `menzil migrate` again, and create them anew' end;
  end if;
end $$;

-- What `menzil migrate` calls again and again before it applies migration 0007, each time in a transaction of its own. It
-- stops at the oldest open transaction: what ended in it may still commit.
create function menzil._before_0007(p_limit integer) returns integer
language plpgsql as $$
begin
  perform menzil._refuse_views();
  return menzil._copy_ends(p_limit, pg_snapshot_xmin(pg_current_snapshot()));
end $$;

-- Clients of 0.1 ask for the schema version and refuse a newer one than theirs. Until 0007 the code is theirs, so they are
-- told the version of the code.
do $$
begin
  if to_regprocedure('menzil.schema_version()') is not null then
    execute $code$
      create or replace function menzil.schema_version() returns integer
      language sql stable security definer
      set search_path = pg_catalog, menzil, pg_temp as 'select max(c.schema_version) from menzil.installed_code c'
    $code$;
  end if;
end $$;

-- ---------------------------------------------------------------------------------------------------------------------------
-- Tables and types of the new engine whose names the old one does not use. They stay empty until migration 0007.

-- One row per sending statement and lane, and per settle that gives something back to a gate.
-- xid is the transaction that wrote the line and the key by which lines are found: a fold never walks over lines that were
-- folded long ago, under every snapshot that is held and wherever VACUUM made room.
create table menzil.line (
  xid           xid8 not null default pg_current_xact_id(),
  channel_id    integer not null,
  rank          smallint,                            -- 10 - priority: the lane; null: the line is for the channel's gate
  due_at        timestamptz,                         -- lane: the position of these messages; gate: when the news was told
  first_id      bigint,
  n             integer,
  flags         smallint not null default 0,         -- 1 not plain, 2 expires, 4 has an ordering key, 64 take out of the lane
  ids           bigint[],                            -- null: first_id .. first_id + n - 1
  ordering_key  text,                                -- gate: this key may need a head
  epoch         integer,                             -- gate: slots that came back ...
  freed         integer,                             -- ... and how many
  news          smallint,                            -- gate: 1 success, 2 failure, 3 alive, 4 nothing learned
  news_count    integer,
  news_at       timestamptz,                         -- gate: when the newest of these leases was granted
  wait_until    timestamptz                          -- gate: the endpoint asked for a rest
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_insert_threshold = -1,
        autovacuum_analyze_threshold = 1000000, vacuum_truncate = off, toast_tuple_target = 8160);
alter table menzil.line alter column ids set storage external;
create index line_xid on menzil.line (xid);

-- Lines of a lane or gate that another transaction has held for long. They are moved out of the log, so that the log
-- stays short, and are found by lane.
create table menzil.aside (like menzil.line)
  with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, vacuum_truncate = off, toast_tuple_target = 8160);
alter table menzil.aside alter column ids set storage external;
create index aside_lane on menzil.aside (channel_id, rank, xid);

-- A proof: every committed line with xid < folded_to is folded, except lines whose xid is in late. Every committed row is
-- true for ever; the newest row is the cheapest to use.
create table menzil.look (
  id         bigint generated always as identity primary key,
  at         timestamptz not null,
  folded_to  xid8 not null,
  late       xid8[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Runs of one lane do not overlap in (due_at, id), except runs of the same microsecond.
create table menzil.run (
  channel_id  integer not null,
  rank        smallint not null,
  due_at      timestamptz not null,
  first_id    bigint not null,
  last_due    timestamptz not null,
  last_id     bigint not null,
  n           integer not null,
  flags       smallint not null,
  ids         bigint[],                              -- null: first_id .. first_id + n - 1
  primary key (channel_id, rank, due_at, first_id)
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
alter table menzil.run alter column ids set storage external;

-- Messages with an expiry that may still wait. Rows go when their time comes, also if the message has ended before.
create table menzil.expiring (
  expires_at  timestamptz not null,
  id          bigint not null,
  created_at  timestamptz not null,
  primary key (expires_at, id)
);

-- Messages that were cancelled while they stood in a line or run. The consumer that meets one leaves it out.
create table menzil.withdrawn (id bigint primary key);

-- Who holds an idempotency key. Nothing is written when the message ends: a send that meets a held key asks for the end.
create table menzil.key (
  channel_id       integer not null,
  idempotency_key  text not null,
  message_id       bigint not null,
  payload_hash     text,
  created_at       timestamptz not null,             -- of the message: finds its month
  primary key (channel_id, idempotency_key)
);

-- Functions that are made anew when a month begins, because the name of its partition stands in them: finding the
-- partition of a row costs as much as the row.
create table menzil.hot_function (
  name      text primary key,
  template  text not null,
  month     timestamptz
);

-- Housekeeping. One row per job; a worker that moves next_at forward does the round, in a transaction of its own.
create table menzil.job (
  name         text primary key,
  call         text not null,                        -- SQL that does a round and returns how many rows it changed
  every        interval not null,
  light        boolean not null default false,       -- locks no relation: a dequeue may do it where no worker runs
  next_at      timestamptz not null default '-infinity',
  last_run_at  timestamptz,
  last_worker  text,
  last_count   bigint,
  last_error   text,
  state        jsonb                                 -- where a round that walks a table goes on
) with (fillfactor = 50);

create sequence menzil.turn_mark as bigint minvalue 0 start 0;      -- microseconds: no lane in line had an older turn at the last deep look
create sequence menzil.deep_at as bigint minvalue 0 start 0;        -- microseconds: when the next deep look is due
create sequence menzil.withdrawn_xid as bigint minvalue 0 start 0;  -- the newest transaction that withdrew messages

-- What a settle took out of one lease.
create type menzil.taken as (ids bigint[], attempt bigint, leased_at timestamptz, worker text, channel_id integer, epoch integer, flags smallint);

-- How one try failed. counts: it speaks against the endpoint; rest: the endpoint asks to be left alone for retry_after.
create type menzil.failure as (id bigint, error text, permanent boolean, disables boolean, retry_after interval, counts boolean, rest boolean, response jsonb);

-- A lane that a dequeue has locked: where its row is, and where its head is.
create type menzil.turn as (at tid, channel_id integer, name text, head_due timestamptz, head_id bigint, gone integer, gated boolean);

-- What a send must know of a message to put it in its place.
create type menzil.sent as (id bigint, channel_id integer, rank smallint, scheduled_at timestamptz, expires_at timestamptz, ordering_key text);

-- An ended message as readers of the archive and of the feed see it: the columns of the view archive.
create type menzil.archived as (
  id bigint, status text, channel text, endpoint_id integer, priority smallint, num_attempts bigint, retry_count integer, created_at timestamptz,
  scheduled_at timestamptz, expires_at timestamptz, first_leased_at timestamptz, leased_at timestamptz, ended_at timestamptz, ended_xid xid8, worker text,
  payload jsonb, content bytea, payload_hash text, ordering_key text, idempotency_key text, correlation_id uuid, headers jsonb, metadata jsonb,
  last_error text, state bytea, redrive_of bigint, replay_of bigint, response jsonb
);
