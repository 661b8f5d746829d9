-- Indexes for people who look at one message: what was sent again because of it, what shares its correlation id, what happened to a
-- channel, which schedule or bulk send a message came with, what lanes were told and have not folded. Those on message are partial: a
-- message without the column costs nothing.
-- Only empty tables get them here. CREATE INDEX keeps writers out while it reads a table, so `menzil migrate` builds the others after
-- this transaction, CONCURRENTLY, as menzil._missing_indexes tells it. Months that are made later have them from the beginning.
do $$
begin
  if not exists (select 1 from menzil.message) then
    create index message_redrive_of on menzil.message (redrive_of) where redrive_of is not null;
    create index message_replay_of on menzil.message (replay_of) where replay_of is not null;
    create index message_correlation_id on menzil.message (correlation_id) where correlation_id is not null;
  end if;
  if not exists (select 1 from menzil.event) then
    create index event_entity on menzil.event (entity_type, entity_id, id);
  end if;
  if not exists (select 1 from menzil.schedule_slot) then
    create index schedule_slot_message on menzil.schedule_slot (message_id) where message_id is not null;
  end if;
  if not exists (select 1 from menzil.bulk_send) then
    create index bulk_send_first on menzil.bulk_send (first_id) where first_id is not null;
  end if;
  if not exists (select 1 from menzil.line) then
    create index line_news on menzil.line (channel_id) where news is not null;
  end if;
end $$;

-- One reason why a message waits, as menzil.message_why shows it.
create type menzil.why as (reason text, sentence text, since timestamptz, until timestamptz, blocked_by text, repair text);
