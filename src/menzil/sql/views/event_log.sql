-- What operators and the queue itself did, and who did it.
create or replace view menzil.event_log as
select e.id, e.event_type, e.entity_type, e.entity_id, e.old_value, e.new_value, e.metadata, e.created_at, e.xid, e.actor, e.via from menzil.event e;
