-- People look for messages by correlation id, and for messages that were sent again because of others. Indexes of message for that
-- were paid for by every send: a random UUID costs as much as half of the row. Now the job lookups writes correlation ids into a table
-- of their own, some moments after the send; menzil.messages_with_correlation reads messages above lookup_state.written_to themselves.
-- The parent first, as senders lock it: they wait here for the moment that dropping takes.
lock table menzil.message in access exclusive mode;
drop index if exists menzil.message_redrive_of, menzil.message_replay_of, menzil.message_correlation_id;

-- A row whose message is gone is ignored, and the job old_lookups deletes it. One index each: with an index by message_id beside it, the
-- planner would take that one for the order of the answer, and read all of it.
create table menzil.correlated (
  message_id      bigint not null,
  correlation_id  uuid not null
);
create index correlated_id on menzil.correlated (correlation_id, message_id);
-- Written by redrives and replays themselves; by the job where an earlier version sent the message.
create table menzil.lineage (
  message_id  bigint not null,
  parent_id   bigint not null                          -- the message was redriven or replayed from this one
);
create index lineage_parent on menzil.lineage (parent_id, message_id);

-- How far the job lookups has come. One row; each round writes a new one, and readers ask for the highest id: rows that a held snapshot
-- keeps are not walked over.
create table menzil.lookup_state (
  id          bigint generated always as identity primary key,
  written_to  bigint not null,                         -- messages up to this id have their rows in these two ...
  gaps        int8multirange not null default '{}',    -- ... but for these: not committed when they were looked for
  mark_id     bigint,                                  -- ids up to this one were drawn ...
  mark_xid    bigint,                                  -- ... by transactions before this one
  told_from   bigint not null                          -- redrives and replays above this id write their parent themselves
);
insert into menzil.lookup_state (written_to, told_from) select 0, coalesce(pg_sequence_last_value('menzil.message_id'), 0);

alter type menzil.bulk add attribute replays boolean;

-- VACUUM cuts off empty pages at the end of a table under an ACCESS EXCLUSIVE lock, which also reaches readers of a standby. These tables
-- are empty whenever consumers keep up, so each VACUUM would cut them and the next send or dequeue would make them grow again.
do $$
declare
  v_name text;
begin
  foreach v_name in array '{run,lease,lane,look,aside,scheduled,key_queue,expiring,withdrawn,size_change,tally}'::text[] loop
    execute format('alter table menzil.%I set (vacuum_truncate = off, toast.vacuum_truncate = off)', v_name);
  end loop;
end $$;
