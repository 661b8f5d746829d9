-- Where live messages are. The place of a row is its state:
--   message    the body, for as long as the message lives
--   ready      may be leased now              scheduled   due later (sent so, deferred or retried)
--   key_queue  stands behind its ordering key lease       in flight
-- No CHECK constraints here: PostgreSQL parses them anew in every statement, a third of the cost of a send.
-- Senders only append. The rows that decide who is served next (lane, gate) are written by consumers alone.

create sequence menzil.message_id as bigint;

create table menzil.message (
  id               bigint primary key,
  channel_id       integer not null,                 -- no foreign key: its lock would be a shared row
  rank             smallint not null,                -- 10 - priority: indexes ascend
  due_at           timestamptz not null,             -- with channel, rank and id: its place in ready or scheduled
  created_at       timestamptz not null,
  scheduled_at     timestamptz,
  expires_at       timestamptz,
  payload          jsonb,                            -- either this
  content          bytea,                            -- or this
  ordering_key     text,
  idempotency_key  text,
  payload_hash     text,
  correlation_id   uuid,
  headers          jsonb,
  metadata         jsonb,
  attempts         bigint not null default 0,        -- leases granted so far; only grows: the fencing token
  retry_count      integer not null default 0,       -- failures counted against the retry budget
  next_retry_at    timestamptz,
  first_leased_at  timestamptz,
  last_error       text,
  state            bytea,
  redrive_of       bigint,
  replay_of        bigint
);
create unique index message_idempotency on menzil.message (channel_id, idempotency_key) where idempotency_key is not null;
create index message_expiry on menzil.message (expires_at) where expires_at is not null;

-- Keys of ended messages, kept for `idempotency_retention` seconds.
create table menzil.used_key (
  channel_id       integer not null,
  idempotency_key  text not null,
  message_id       bigint not null,
  payload_hash     text,
  until_at         timestamptz not null,
  primary key (channel_id, idempotency_key)
);
create index used_key_until on menzil.used_key (until_at);

create table menzil.ready (
  channel_id    integer not null,
  rank          smallint not null,
  due_at        timestamptz not null,
  id            bigint not null,
  attempts      bigint not null default 0,
  expires_at    timestamptz,
  ordering_key  text,
  primary key (channel_id, rank, due_at, id)
);

create table menzil.scheduled (
  due_at        timestamptz not null,
  id            bigint not null,
  channel_id    integer not null,
  rank          smallint not null,
  attempts      bigint not null default 0,
  expires_at    timestamptz,
  ordering_key  text,
  holds_key     boolean not null default false,      -- a retry keeps its ordering key blocked; a first schedule does not
  primary key (due_at, id)
);
create index scheduled_channel on menzil.scheduled (channel_id, due_at);

-- place 0: the one message of its key that is ready, leased or waiting for its retry; place 1: those behind it.
create table menzil.key_queue (
  channel_id    integer not null,
  ordering_key  text not null,
  place         smallint not null,
  id            bigint not null,
  primary key (channel_id, ordering_key, place, id)
);

create table menzil.lease (
  id            bigint primary key,
  channel_id    integer not null,
  attempt       bigint not null,
  leased_at     timestamptz not null,
  unlock_at     timestamptz not null,
  epoch         integer,                             -- of the gate that counted it; null: not counted
  ordering_key  text,
  worker        text
);

-- One row per dequeue call: the expiry index of leases without an index on lease.
create table menzil.lease_batch (
  unlock_at  timestamptz not null,
  ids        bigint[] not null
);
create index lease_batch_unlock on menzil.lease_batch (unlock_at);

-- What senders and settlers tell the consumers. Appended, folded into lane and gate, and truncated by generation;
-- read by physical position, so it needs no index. One row per statement, not per message.
create table menzil.arrival (
  generation    smallint not null,
  xid           xid8 not null default pg_current_xact_id(),
  channel_id    integer,
  rank          smallint,                            -- with due_at and id: the least new place in this lane
  due_at        timestamptz,
  id            bigint,
  span          boolean,                             -- and more of the same statement right behind it
  ordering_key  text,                                -- this key may need a head
  epoch         integer,                             -- with freed: slots given back to this gate
  freed         integer,
  channel_ids   integer[],                           -- the same as channel_id, rank, due_at, id, for many lanes
  ranks         smallint[],
  due_ats       timestamptz[],
  ids           bigint[],
  spans         boolean[]
) partition by list (generation);
create table menzil.arrival_0 partition of menzil.arrival for values in (0) with (autovacuum_enabled = off);
create table menzil.arrival_1 partition of menzil.arrival for values in (1) with (autovacuum_enabled = off);
create table menzil.arrival_2 partition of menzil.arrival for values in (2) with (autovacuum_enabled = off);
create table menzil.arrival_3 partition of menzil.arrival for values in (3) with (autovacuum_enabled = off);

-- A lane is one priority of one channel: the unit that takes turns.
create table menzil.lane (
  channel_id  integer not null,
  rank        smallint not null,
  phase       smallint not null default 0,           -- 0 idle, 1 active, 2 cooling: looked empty once
  gated       boolean not null default false,        -- its channel's gate has a say
  name        text not null,                         -- of its channel, which never changes
  head_due    timestamptz not null default '-infinity',   -- lower bound of what is left, after the last visit
  head_id     bigint not null default 0,
  low_due     timestamptz not null default '-infinity',   -- where the next scan starts: the head of the visit before
  low_id      bigint not null default 0,
  early_due   timestamptz[] not null default '{}',   -- places below the scan start, each fetched by itself: late commits,
  early_id    bigint[] not null default '{}',        -- retries, next heads of ordering keys
  next_at     timestamptz,                           -- when it may be visited; null: idle or held by its gate
  visited_by  xid8 not null default '0',             -- last visitor: within one transaction the scan start must not move twice
  primary key (channel_id, rank)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000);
create index lane_turn on menzil.lane (rank, next_at) where next_at is not null;

-- The limits of one channel as they stand now.
create table menzil.gate (
  channel_id           integer primary key,
  paused               boolean not null default false,
  max_concurrency      integer,
  release_interval_ms  bigint not null default 0,
  release_count        integer not null default 1,
  in_flight            integer not null default 0,
  epoch                integer not null default 0,   -- a recount starts a new one; what older leases give back is ignored
  released_at          timestamptz[] not null default '{}',    -- releases inside the current interval
  released             integer[] not null default '{}'
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000);

-- Size changes of channels with a max_size: appended by sends and ends, summed and compacted by sends.
create table menzil.size_change (
  channel_id  integer not null,
  change      bigint not null
);
create index size_change_channel on menzil.size_change (channel_id);

-- Registers. A sequence has one version and no transaction: a value that is only a hint, written often, read always,
-- costs nothing while an old snapshot is held. Each may be lost or set back without harm.
create sequence menzil.arrival_mark as bigint minvalue 0 start 0;   -- four block numbers of 15 bits: where folding starts
create sequence menzil.swept_at as bigint minvalue 0 start 0;       -- microseconds: last look at everything, not only the recent
create sequence menzil.withdrawn_at as bigint minvalue 0 start 0;   -- microseconds: last cancel, purge or expiry of waiting messages
create sequence menzil.ended_count as bigint minvalue 0 start 0;    -- messages ended or never committed; with message_id an upper bound of the depth
create sequence menzil.counted_at as bigint minvalue 0 start 0;     -- microseconds: when the messages were last counted
create sequence menzil.counted_ids as bigint minvalue 0 start 0;    -- ids given out by then
create sequence menzil.counted_xid as bigint minvalue 0 start 0;    -- the first transaction after that
create sequence menzil.lane_bytes as bigint minvalue 0 start 0;     -- size of lane after its last rewrite
create sequence menzil.gate_bytes as bigint minvalue 0 start 0;
