-- What delivery needs: the circuit of each endpoint, what was answered, who works, who sweeps, and pub/sub.

-- The circuit of an endpoint is part of its gate, so that opening it is one row and no message is touched.
alter table menzil.gate
  add column circuit          smallint not null default 0,      -- 0 closed, 1 half-open, 2 open; as in metrics
  add column failure_count    integer not null default 0,       -- failures in a row
  add column opened_at        timestamptz,
  add column probe_at         timestamptz,                       -- open: when a probe may go; half-open: when it went
  add column wait_until       timestamptz,                       -- the endpoint asked for a rest (Retry-After)
  add column last_success_at  timestamptz,
  add column last_failure_at  timestamptz;

-- News of an endpoint, from those who settle to those who dequeue: 1 success, 2 failure, 3 alive (it refused one message
-- for good), 4 nothing learned (deferred or lost). due_at is when it was told.
alter table menzil.arrival
  add column news             smallint,
  add column news_count       integer,
  add column news_at          timestamptz,                       -- when the newest of these leases was granted
  add column wait_until       timestamptz;

-- Endpoints take turns among themselves: a worker that serves them all need not name them.
alter table menzil.lane add column push boolean not null default false;
create index lane_turn_push on menzil.lane (rank, next_at) where push and next_at is not null;

-- A worker that finds nothing to do says so here; the next send wakes it up and takes the word back.
-- Unlogged: nobody's commit waits for it, and after a crash there is nobody to wake.
create unlogged sequence menzil.wanted as bigint minvalue 0 start 0;
-- Microseconds: the last failure of any endpoint. While it is recent, successes are news too.
create unlogged sequence menzil.failed_at as bigint minvalue 0 start 0;

-- What the other side answered, for people: status, duration_ms, body, headers, correlation_id.
alter table menzil.archive add column response jsonb;
alter table menzil.attempt add column response jsonb;
create index attempt_ended on menzil.attempt using brin (ended_at);

create table menzil.worker (
  name          text primary key,
  host          text not null,
  pid           integer not null,
  version       text not null,
  channels      text[],                                          -- null: all endpoints
  concurrency   integer not null,
  in_flight     integer not null default 0,
  delivered     bigint not null default 0,
  failed        bigint not null default 0,
  started_at    timestamptz not null,
  heartbeat_at  timestamptz not null,
  stopping_at   timestamptz,
  stopped_at    timestamptz
) with (fillfactor = 50);

-- One row per janitor: whoever moves next_at forward does the round.
create table menzil.janitor (
  name         text primary key,
  next_at      timestamptz not null default '-infinity',
  last_run_at  timestamptz,
  last_worker  text,
  last_count   bigint,
  last_error   text
) with (fillfactor = 50);

-- Messages that an idempotent consumer has seen already.
create table menzil.inbox (
  consumer    text not null,
  message_key text not null,
  seen_at     timestamptz not null default clock_timestamp(),
  primary key (consumer, message_key)
);
create index inbox_seen on menzil.inbox using brin (seen_at);

create table menzil.event_type (
  name         text primary key,
  description  text,
  schema       jsonb,
  created_at   timestamptz not null default clock_timestamp()
);

create table menzil.subscription (
  id          bigint generated always as identity primary key,
  event_type  text not null references menzil.event_type on delete cascade,
  channel_id  integer not null references menzil.channel,
  filter      jsonb,
  created_at  timestamptz not null default clock_timestamp()
);
-- A hash, because a filter may be longer than an index entry.
create unique index subscription_once on menzil.subscription (event_type, channel_id, md5(coalesce(filter::text, '')));
create index subscription_channel on menzil.subscription (channel_id);

alter table menzil.setting_value
  add column event_log_retention_days  integer not null default 90,
  add column inbox_retention           integer not null default 604800;

-- Lanes of endpoints that exist already.
update menzil.lane l set push = true, gated = true
  from menzil.channel c where c.id = l.channel_id and c.protocol is not null;

-- The list of dead letters is cleaned up from its old end.
create index dead_letter_failed on menzil.dead_letter (failed_at);

-- For those who watch: how many dead letters wait for a decision, and whether they block an ordering key.
create index dead_letter_waiting on menzil.dead_letter (channel_id) where status = 'failed';
create index dead_letter_blocking on menzil.dead_letter (channel_id) where blocks_key;

-- Protocols that installed packages brought along, with the rules for the configs of their endpoints.
create table menzil.protocol (
  name           text primary key,
  rules          jsonb not null,
  registered_at  timestamptz not null default clock_timestamp()
);

-- The first nextval of a sequence that starts at 0 gives 0: from now on the count is exact from the first message.
select setval('menzil.ended_count', last_value) from menzil.ended_count;
