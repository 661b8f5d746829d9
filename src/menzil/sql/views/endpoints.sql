-- Endpoints: channels with a destination. The config has marks in place of secrets.
-- Of its columns only retry_policy is meant to be written, and checked when it is.
create or replace view menzil.endpoints as
select c.id, c.name, c.protocol, c.config, c.retry_policy, c.enabled, c.paused, c.created_at, c.updated_at
  from menzil.channel c
 where c.protocol is not null and c.dropped_at is null;
