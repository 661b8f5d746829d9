-- What people who watch the queue need: who acted, why letters died, how much passed by the minute, and runs of the pipeline.
-- Every step is short: columns without a default, empty tables, and indexes over rows that are few or none.

-- In the order in which settles that fail write them, so that none of them meets this step halfway. Senders use none of these tables.
lock table menzil.attempt, menzil.dead_letter, menzil.event, menzil.worker in access exclusive mode;

-- Who acted, and through what: menzil._event fills both. Lines from before this step have neither.
alter table menzil.event add column actor text, add column via text;

-- Why a letter died, in words that are the same for the same trouble. menzil._bury fills them; the job causes fills those of
-- older letters. cause_hash names a cause and its class.
alter table menzil.dead_letter add column cause text, add column error_class text, add column cause_hash text;
-- Letters of one cause, in the order in which they are redriven. failed_at and id: causes are counted from the index alone.
create index dead_letter_cause on menzil.dead_letter (channel_id, cause_hash, created_at, original_message_id) include (failed_at, id) where status = 'failed';
drop index menzil.dead_letter_waiting;   -- the new one begins with the same column
create index dead_letter_unexplained on menzil.dead_letter (id) where cause_hash is null;

-- Tries in the order of the transactions that wrote them, for the job pulse. Tries from before this step have no xid.
alter table menzil.attempt add column xid xid8;
alter table menzil.attempt alter column xid set default pg_current_xact_id();
create index attempt_feed on menzil.attempt (xid) where xid is not null;

-- What passed, by the minute and channel; channel 0 is all channels together. Gauges are null where nobody measured. ended_ms and
-- try_ms are null, or 12 counters: below 5, 25, 100, 500 ms, 1, 5, 30 s, 2, 10 min, 1, 6 h, and more.
create table menzil.pulse_minute (
  channel_id    integer not null,
  at            timestamptz not null,                -- when the minute began
  waiting       bigint,
  in_flight     bigint,
  oldest_s      double precision,
  sent          bigint not null default 0,
  completed     bigint not null default 0,
  failed_tries  bigint not null default 0,
  dead          bigint not null default 0,
  deferred      bigint not null default 0,
  expired       bigint not null default 0,
  cancelled     bigint not null default 0,
  ended_ms      integer[],
  try_ms        integer[],
  primary key (channel_id, at)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index pulse_minute_at on menzil.pulse_minute (at);
-- The same by the hour, for what is older than 48 hours. Written out: LIKE would copy the names of constraints too, and a restored dump,
-- which makes this table first, would give those of pulse_minute other names.
create table menzil.pulse_hour (
  channel_id    integer not null,
  at            timestamptz not null,                -- when the hour began
  waiting       bigint,
  in_flight     bigint,
  oldest_s      double precision,
  sent          bigint not null default 0,
  completed     bigint not null default 0,
  failed_tries  bigint not null default 0,
  dead          bigint not null default 0,
  deferred      bigint not null default 0,
  expired       bigint not null default 0,
  cancelled     bigint not null default 0,
  ended_ms      integer[],
  try_ms        integer[],
  primary key (channel_id, at)
);
create index pulse_hour_at on menzil.pulse_hour (at);

-- What the parts of the job pulse hand to each other: n more of this kind in this minute. bucket: 1 to 12, of ended_ms or try_ms.
create type menzil.pulse_news as (channel_id integer, at timestamptz, what text, bucket integer, n bigint);

-- How far a table is counted in the order of its transactions: all before counted_to, but for late ones. Of a late one the rows up to
-- its id are counted.
create type menzil.pulse_place as (counted_to xid8, late xid8[], late_ids bigint[]);

-- How far the job pulse has counted. One row, and no primary key: pg_repack would write the row anew, and its xmin says whether the
-- transaction ids in it are those of this cluster.
create table menzil.pulse_state (
  sent_to       bigint not null,                     -- sends are counted up to this id ...
  gaps          int8multirange not null default '{}',   -- ... but for these: not committed when they were looked for
  mark_id       bigint,                              -- ids up to this one were drawn ...
  mark_xid      xid8,                                -- ... by transactions before this one
  ends          menzil.pulse_place not null,
  tries         menzil.pulse_place not null,
  counts_since  timestamptz not null default '-infinity',   -- what ended before, a restore may have brought along
  gauged_at     timestamptz,                         -- the last minute that has gauges
  counted_at    timestamptz not null default clock_timestamp(),
  behind_since  timestamptz,                         -- rounds meet their limit since then; null: the last one did not
  writer        xid[] not null                       -- of this row: after a restore it is another
) with (fillfactor = 50);
create unique index pulse_state_only_row on menzil.pulse_state ((true));

-- Durations of tries that workers handed over and the job pulse has not added up yet.
create table menzil.pulse_tally (
  at          timestamptz not null,
  channel_id  integer not null,
  try_ms      integer[] not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table menzil.worker add column tally_number bigint not null default 0;   -- of the last tally that a worker handed over

-- Runs of `menzil pipeline`. ended_at is null while a run goes on, and stays null when it was killed.
create table menzil.pipeline_run (
  id          bigint generated always as identity primary key,
  kind        text not null,
  lake        text,
  started_at  timestamptz not null default clock_timestamp(),
  ended_at    timestamptz,
  rows        bigint,
  files       bigint,
  verdict     text,
  error       text
);

-- Settings that no send and no consumer reads, a row for each that is not at its default. A new column of setting_value would make
-- every sender wait for the whole migration.
create table menzil.setting_word (
  name   text primary key,
  value  text not null
);
