-- What the pipeline needs: sends of many rows that are exactly once.

-- One row per send. Its rows wait in a staging table of its own, which goes away with the commit: nothing is deleted row
-- by row. A done send stays, so that the same id sends nothing again.
create table menzil.bulk_send (
  send_id        text primary key,
  state          text not null default 'open' check (state in ('open', 'done')),
  staging        text not null,                      -- name of the table, numbered: never made of what users say
  what           text,                               -- for people: where the rows come from
  opened_at      timestamptz not null default clock_timestamp(),
  touched_at     timestamptz not null default clock_timestamp(),
  committed_at   timestamptz,
  row_count      bigint,
  created_count  bigint,                             -- fewer than rows when idempotency keys were used before
  first_id       bigint,
  last_id        bigint
);
create index bulk_send_open on menzil.bulk_send (touched_at) where state = 'open';
create sequence menzil.bulk_staging as bigint;

-- What the steps of a commit hand to each other.
create type menzil.bulk as (
  staging           text,
  tokens            text[],
  bases             bigint[],                        -- place of each token's first row
  rows              bigint,
  repeats           bigint,                          -- rows whose idempotency key is held already
  special           boolean,                         -- some have a schedule or an ordering key
  keyed             boolean,                         -- some have an idempotency key
  described         boolean,                         -- some have headers or metadata
  names             text[],                          -- endpoints that rows go to
  channels          integer[],                       -- and their ids, looked up once: what changes meanwhile comes later
  limited           integer[],                       -- channels with a max_size
  coming            bigint[],                        -- and rows for each of them
  max_payload_size  integer,
  max_queue_size    bigint,
  starts            bigint[],                        -- runs of ids: the place each starts at
  shifts            bigint[],                        -- and id minus place in it
  now               timestamptz
);

-- The change feed: ended messages by (ended_xid, id), lines of the event log by (xid, id). A reader goes up to the oldest
-- transaction that is still open, so whatever commits late is still ahead of it.
alter table menzil.event add column xid xid8 not null default pg_current_xact_id();   -- lines from before this step share its id
create index event_feed on menzil.event (xid, id);

-- The furthest place of the feed that each clean-up took away. Whoever stood before it, and started before it, lost rows.
create table menzil.feed_drop (
  id          bigint generated always as identity primary key,
  feed        text not null,
  xid         xid8 not null,
  row_id      bigint not null,
  dropped_at  timestamptz not null default clock_timestamp()
);
create index feed_drop_feed on menzil.feed_drop (feed, id);

-- Named readers of the feed and how far they are.
create table menzil.feed_consumer (
  name         text primary key,
  feed         text not null check (feed in ('archive', 'event_log')),
  xid          xid8 not null,
  row_id       bigint not null,
  started_at   timestamptz not null default clock_timestamp(),
  advanced_at  timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
