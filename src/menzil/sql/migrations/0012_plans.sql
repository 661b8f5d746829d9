-- Plans: redrives, replays and cancels of many messages, kept as data. docs/decisions/0016-plans-are-data.md says why.
--   plan          what is wanted, by whom and at which pace: written by operators
--   plan_progress how far it is: written by the session that steps it. A row of its own, so that no operator waits for a step
--   plan_channel  the channels of a plan, each with a cursor of its own, so that a channel that is held keeps no other waiting
--   plan_part     the messages that a plan has made, about a thousand in a row
--   plan_todo     the messages that a cancel has still to end
-- None of these rows is read or written on the way of a message.

create table menzil.plan (
  id               bigint generated always as identity primary key,
  kind             text not null check (kind in ('redrive', 'replay', 'cancel')),
  filter           jsonb not null,
  rate             double precision,                 -- messages per second; null: as fast as there is room
  note             text,
  form_key         text unique,                      -- a second click of the same form finds this row
  status           text not null default 'draft' check (status in ('draft', 'running', 'paused', 'stopped', 'done')),
  actor            text not null,
  via              text not null,
  counted          bigint not null,
  counted_exactly  boolean not null,
  created_at       timestamptz not null,
  started_at       timestamptz,
  ended_at         timestamptz,
  top_id           bigint not null,                  -- newest dead letter (redrive) or message there was: newer ones are not part of the plan
  takes_back       boolean not null default false    -- stopped, and some of what it made has still to be taken back
) with (fillfactor = 50);
create index plan_at_work on menzil.plan (id) where status = 'running' or takes_back;
create index plan_old on menzil.plan (coalesce(ended_at, created_at)) where status in ('draft', 'stopped', 'done');

create table menzil.plan_progress (
  plan_id      bigint primary key references menzil.plan on delete cascade,
  done         bigint not null default 0,
  skipped      bigint not null default 0,
  taken_back   bigint not null default 0,
  last_due_at  timestamptz,                          -- when the last message that was made is due
  last_error   text,
  stepped_at   timestamptz,                          -- running plans take turns
  gathered     boolean not null default false        -- cancel: plan_todo is filled
) with (fillfactor = 50);

create table menzil.plan_channel (
  plan_id     bigint not null references menzil.plan on delete cascade,
  channel_id  integer not null,
  counted     bigint not null,
  cursor_at   timestamptz,                           -- redrive of one cause: with cursor_id the place in its index
  cursor_id   bigint not null default 0,             -- everything up to here is done or left out
  end_id      bigint,                                -- replay: no message behind this one
  done        bigint not null default 0,
  skipped     bigint not null default 0,
  stepped_at  timestamptz,                           -- channels of one plan take turns
  probed_at   timestamptz,                           -- a message was made for the probe of this time while the circuit was open
  finished    boolean not null default false,
  left_out    text,                                  -- why the rest was given up
  primary key (plan_id, channel_id)
) with (fillfactor = 50);
create index plan_channel_turn on menzil.plan_channel (plan_id, stepped_at nulls first) where not finished;

-- No row spans more than 4096 ids, so the plan of a message is found among its neighbours, as its end is in done.
create table menzil.plan_part (
  plan_id    bigint not null references menzil.plan on delete cascade,
  lo_id      bigint not null,
  hi_id      bigint not null,
  n          integer not null,
  ids        bigint[],                               -- ascending; null: lo_id .. hi_id
  due_at     timestamptz not null,                   -- of its first message: before that none of them can have been leased
  check_at   timestamptz not null,                   -- when a job asks next whether all have ended
  taken      boolean not null default false,         -- was asked for when the plan took back
  open       boolean not null default true,          -- some have not ended, as far as is known
  completed  integer not null default 0,             -- how they ended, once all have
  dead       integer not null default 0,
  expired    integer not null default 0,
  cancelled  integer not null default 0,
  primary key (plan_id, lo_id)
) with (fillfactor = 70, toast_tuple_target = 8160);
alter table menzil.plan_part alter column ids set storage external;
create index plan_part_id on menzil.plan_part (lo_id, hi_id);
create index plan_part_open on menzil.plan_part (plan_id, due_at) where open;
create index plan_part_check on menzil.plan_part (check_at) where open;

create table menzil.plan_todo (
  plan_id  bigint not null references menzil.plan on delete cascade,
  lo_id    bigint not null,
  ids      bigint[] not null,                        -- ascending
  primary key (plan_id, lo_id)
) with (toast_tuple_target = 8160);
alter table menzil.plan_todo alter column ids set storage external;
