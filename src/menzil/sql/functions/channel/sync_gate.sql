-- Keeps the gate of a channel in step with its limits, whoever changes them.
-- Taking a limit into use counts what is in flight now: it waits for the lanes, so that no dequeue is half way.
create or replace function menzil._sync_gate() returns trigger
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_push boolean := new.protocol is not null;
  -- An endpoint always asks its gate, which also holds its circuit.
  v_gated boolean := v_push or new.paused or new.max_concurrency is not null or new.release_interval_ms > 0;
  v_paused boolean := new.paused or not new.enabled;   -- a disabled endpoint holds what it has
  v_counted integer;
begin
  insert into menzil.gate (channel_id, paused, max_concurrency, release_interval_ms, release_count)
    values (new.id, v_paused, new.max_concurrency, new.release_interval_ms, new.release_count)
    on conflict do nothing;
  if tg_op = 'INSERT' then
    return null;
  end if;
  perform 1 from menzil.gate g where g.channel_id = new.id for update;
  perform 1 from menzil.lane l where l.channel_id = new.id order by l.rank for update;
  update menzil.gate g set paused = v_paused, max_concurrency = new.max_concurrency, release_interval_ms = new.release_interval_ms,
      release_count = new.release_count,
      -- A rate counts from when it is put on: what an earlier rate let through is none of its business.
      released_at = case when old.release_interval_ms > 0 then g.released_at else '{}' end,
      released = case when old.release_interval_ms > 0 then g.released else '{}' end
   where g.channel_id = new.id;
  if new.max_concurrency is not null and old.max_concurrency is null then
    update menzil.gate g set epoch = g.epoch + 1 where g.channel_id = new.id;
    perform 1 from menzil.lease l where l.channel_id = new.id order by l.id for update;   -- in the order of settles
    update menzil.lease l set epoch = (select g.epoch from menzil.gate g where g.channel_id = new.id) where l.channel_id = new.id;
    get diagnostics v_counted = row_count;
    update menzil.gate g set in_flight = v_counted where g.channel_id = new.id;
  end if;
  update menzil.lane l set gated = v_gated, push = v_push, next_at = case when l.phase <> 0 then least(l.next_at, clock_timestamp()) end
   where l.channel_id = new.id;
  return null;
end $$;

create or replace trigger sync_gate
  after insert or update of enabled, paused, max_concurrency, release_interval_ms, release_count on menzil.channel
  for each row execute function menzil._sync_gate();
