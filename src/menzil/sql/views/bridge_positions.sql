-- Where bridges stand, per partition of their source. lag: records that waited in the source at the last heartbeat; null: no process said it.
create or replace view menzil.bridge_positions as
select b.name, p.partition, p.position, p.taken, p.refused, p.lost, p.moved_at,
       (select (r.lags ->> p.partition)::bigint from menzil.bridge_run r
         where r.bridge_id = b.id and r.stopped_at is null and r.lags ? p.partition order by r.heartbeat_at desc limit 1) as lag
  from menzil.bridge b join menzil.bridge_position p on p.bridge_id = b.id;
