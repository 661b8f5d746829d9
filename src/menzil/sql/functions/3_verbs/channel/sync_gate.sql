-- Keeps the gate of a channel in step with its limits, for every function that changes them.
-- It waits for the lanes, so that no dequeue is half way.
create or replace function menzil._sync_gate() returns trigger
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_paused boolean := new.paused or not new.enabled;   -- a disabled endpoint holds what it has
begin
  insert into menzil.gate (channel_id, paused, max_concurrency, release_interval_ms, release_count)
    values (new.id, v_paused, new.max_concurrency, new.release_interval_ms, new.release_count)
    on conflict do nothing;
  if tg_op = 'INSERT' then
    return null;
  end if;
  perform menzil._hold_channel(new.id);
  update menzil.gate g set paused = v_paused, max_concurrency = new.max_concurrency, release_interval_ms = new.release_interval_ms,
      release_count = new.release_count,
      -- Enabling a rate limit starts with an empty window.
      released_at = case when old.release_interval_ms > 0 then g.released_at else '{}' end,
      released = case when old.release_interval_ms > 0 then g.released else '{}' end
   where g.channel_id = new.id;
  if new.max_concurrency is not null and old.max_concurrency is null then
    -- A new epoch counts from zero; leases from before are looked for until they are over.
    update menzil.gate g set epoch = g.epoch + 1, in_flight = 0, counts_from = clock_timestamp() where g.channel_id = new.id;
  end if;
  update menzil.lane l set gated = menzil._is_gated(new), push = new.protocol is not null,
      next_at = case when l.tail_due is not null then least(l.next_at, clock_timestamp()) end, v = l.v + 1
   where l.channel_id = new.id;
  return null;
end $$;

create or replace trigger sync_gate
  after insert or update of enabled, paused, max_concurrency, max_size, release_interval_ms, release_count on menzil.channel
  for each row execute function menzil._sync_gate();
