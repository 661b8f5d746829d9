-- Repeating messages: what they send, when next, and how the last slot went.
create or replace view menzil.schedules as
select s.id, s.name, s.cron, s.time_zone, s.endpoint_name, s.payload, s.priority, s.ordering_key, s.expires_after, s.headers, s.metadata,
       s.paused, s.next_at, s.last_slot_at, s.last_message_id, s.last_error, s.created_at
  from menzil.schedule s;
