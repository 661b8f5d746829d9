-- Whether an entry of the registry of workers stands for one that leases messages of this channel now.
create or replace function menzil._serves(p_worker menzil.worker, p_channel text, p_endpoint boolean, p_now timestamptz) returns boolean
language sql immutable parallel safe
return p_worker.stopped_at is null and p_worker.stopping_at is null and p_worker.heartbeat_at >= p_now - interval '30 s'
   and (p_channel = any (p_worker.channels) or p_endpoint and (p_worker.channels is null or '(endpoints)' = any (p_worker.channels)));
