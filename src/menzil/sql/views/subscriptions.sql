-- Who gets a copy of which events. A channel that was released or dropped gets nothing any more.
create or replace view menzil.subscriptions as
select s.id, s.event_type, c.name as endpoint_name, s.filter, s.created_at
  from menzil.subscription s join menzil.channel c on c.id = s.channel_id
 where c.released_at is null and c.dropped_at is null;
