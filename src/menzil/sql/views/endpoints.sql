-- Endpoints: channels with a destination. The config has marks in place of secrets, and *** in place of credentials in a URL.
-- The circuit is the one of the last fold: a running worker folds ten times a second, and get_endpoint_health() reads what is newer.
-- Of its columns retry_policy and enabled may be written: see _write_endpoint.
create or replace view menzil.endpoints as
select c.id, c.name, c.protocol, c.config, c.retry_policy, c.enabled, c.paused, c.created_at, c.updated_at,
       (select (array['closed', 'half_open', 'open'])[g.circuit + 1] from menzil.gate g where g.channel_id = c.id) as circuit_state,
       (select g.failure_count from menzil.gate g where g.channel_id = c.id) as circuit_failure_count,
       (select g.probe_at from menzil.gate g where g.channel_id = c.id and g.circuit = 2) as next_probe_at
  from menzil.channel c
 where c.protocol is not null and c.dropped_at is null;
