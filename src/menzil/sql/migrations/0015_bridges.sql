-- The way in from brokers. A bridge takes the records of a source into a channel, or publishes them as events. Where it stands is kept
-- here and moves in the transaction of the messages, so a record becomes one message whatever happens to the process.

create table menzil.bridge (
  id          integer generated always as identity primary key,
  name        text not null unique,
  protocol    text not null,                                    -- of the source
  config      jsonb not null,                                   -- with marks in place of secrets
  channel     text,                                             -- where the messages go,
  event_type  text,                                             -- or what they are published as
  paused      boolean not null default false,
  created_at  timestamptz not null default clock_timestamp(),
  updated_at  timestamptz not null default clock_timestamp(),
  check ((channel is null) <> (event_type is null))
);
comment on table menzil.bridge is 'Sources outside the database whose records become messages.';

create table menzil.bridge_secret (
  bridge_id  integer primary key references menzil.bridge on delete cascade,
  secrets    jsonb not null
);

-- One row per partition of a source. position is a text that only the source can read, and says where reading goes on; null: the source
-- has no positions, and the row only counts.
create table menzil.bridge_position (
  bridge_id   integer not null references menzil.bridge on delete cascade,
  partition   text not null,
  position    text,
  taken       bigint not null default 0,                        -- records that became messages
  refused     bigint not null default 0,                        -- records that became dead letters
  lost        bigint not null default 0,                        -- records that the source had removed before they were taken
  moved_at    timestamptz not null default clock_timestamp(),
  primary key (bridge_id, partition)
);

-- Processes that run a bridge. Nothing depends on these rows: two processes are kept apart by the position.
create table menzil.bridge_run (
  bridge_id      integer not null references menzil.bridge on delete cascade,
  instance       text not null,
  host           text not null,
  pid            integer not null,
  version        text not null,
  started_at     timestamptz not null,
  heartbeat_at   timestamptz not null,
  stopped_at     timestamptz,
  last_error     text,                                          -- null: it takes records, or waits for new ones
  lags           jsonb not null default '{}',                   -- by partition: how many records wait in the source
  growing_since  timestamptz,                                   -- since when more and more records wait
  primary key (bridge_id, instance)
);

-- A record on its way in. fault: why it cannot be a message; body: the text that payload was read from.
create type menzil.incoming as (
  payload jsonb, content bytea, fault text, ordering_key text, idempotency_key text, correlation_id uuid, headers jsonb, metadata jsonb, body text
);
