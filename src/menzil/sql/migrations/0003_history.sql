-- Where ended messages are: the archive, their tries, and the working list of dead letters.

create table menzil.archive (
  id               bigint not null,
  status           text not null,                    -- completed, failed, expired or cancelled
  channel          text not null,
  endpoint_id      integer not null,
  priority         smallint not null,
  num_attempts     bigint not null,
  retry_count      integer not null,
  created_at       timestamptz not null,
  scheduled_at     timestamptz,
  expires_at       timestamptz,
  first_leased_at  timestamptz,
  leased_at        timestamptz,                      -- of the last lease
  ended_at         timestamptz not null,
  ended_xid        xid8 not null,
  worker           text,
  payload          jsonb,
  content          bytea,
  payload_hash     text,
  ordering_key     text,
  idempotency_key  text,
  correlation_id   uuid,
  headers          jsonb,
  metadata         jsonb,
  last_error       text,
  state            bytea,
  redrive_of       bigint,
  replay_of        bigint
) partition by range (created_at);
create table menzil.archive_default partition of menzil.archive default;
create index archive_id on menzil.archive (id);
create index archive_feed on menzil.archive (ended_xid, id);
create index archive_created on menzil.archive using brin (created_at) with (pages_per_range = 64, autosummarize = on);

-- Months that have a partition: settles look here, not into the catalog.
create table menzil.archive_month (month_start timestamptz primary key);

-- Tries that did not end in success; a successful one is in the archive row itself.
create table menzil.attempt (
  message_id  bigint not null,
  attempt     bigint not null,
  channel_id  integer not null,
  outcome     text not null,                         -- failed, deferred or recovered
  leased_at   timestamptz not null,
  ended_at    timestamptz not null,
  worker      text,
  error       text,
  primary key (message_id, attempt)
);

create table menzil.dead_letter (
  id               bigint generated always as identity primary key,
  original_message_id bigint not null unique,
  channel_id       integer not null,
  status           text not null default 'failed' check (status in ('failed', 'redriven')),
  failed_at        timestamptz not null,
  redriven_at      timestamptz,
  redriven_id      bigint,
  priority         smallint not null,
  num_attempts     bigint not null,
  retry_count      integer not null,
  created_at       timestamptz not null,
  scheduled_at     timestamptz,
  expires_at       timestamptz,
  payload          jsonb,
  content          bytea,
  payload_hash     text,
  ordering_key     text,
  idempotency_key  text,
  correlation_id   uuid,
  headers          jsonb,
  metadata         jsonb,
  last_error       text,
  state            bytea,
  redrive_of       bigint,
  replay_of        bigint,
  blocks_key       boolean not null default false    -- on_dead = 'block': its ordering key waits for a decision
);
create index dead_letter_channel on menzil.dead_letter (channel_id, id);
