-- What passed, by channel: by the minute for 48 hours, by the hour for 90 days. at is when the step began. A channel without life in a step
-- has no row.
create or replace view menzil.pulse as
select p.at, c.name as channel, p.waiting, p.in_flight, p.oldest_s, p.sent, p.completed, p.failed_tries, p.dead, p.deferred, p.expired, p.cancelled,
       p.ended_ms::bigint[] as ended_ms, p.try_ms::bigint[] as try_ms, p.step
  from (select m.*, interval '1 min' as step from menzil.pulse_minute m
        union all select h.*, interval '1 h' from menzil.pulse_hour h) p
  join menzil.channel c on c.id = p.channel_id;
select menzil._begin_pulse();
