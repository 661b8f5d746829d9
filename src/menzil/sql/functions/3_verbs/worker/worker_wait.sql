-- A worker is about to wait: the next send wakes those who LISTEN on menzil_wake. Only a hint, one for all workers: so a
-- busy queue sends no notification at all, and a send pays for one only while a worker waits.
-- Returns the seconds until something else is known to be due (a schedule, a retry, a rest that ends, a lease), or null.
-- What is due already is for others: this worker has just looked. 0 where the log has more lines than a dequeue folds as a rule:
-- until they are folded, a dequeue finds nothing of what was sent after them, also where they are of other channels.
create or replace function menzil.worker_wait() returns double precision
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_due timestamptz;
begin
  if exists (select 1 from menzil.line n
              where n.xid >= coalesce((select k.folded_to from menzil.look k order by k.id desc limit 1), '0') order by n.xid offset 300 limit 1) then
    return 0;
  end if;
  -- A transaction that has notified cannot be prepared: where two-phase commits are allowed, workers poll instead.
  if menzil._register('menzil.wanted') = 0 and (select s.notify from menzil.setting_value s) and current_setting('max_prepared_transactions') = '0' then
    perform setval('menzil.wanted', 1);
  end if;
  v_due := least((select d.due_at from menzil.scheduled d where d.due_at > v_now order by d.due_at limit 1),
                 (select b.watch_at from menzil.lease b where b.watch_at > v_now order by b.watch_at limit 1),
                 (select min(l.next_at) from generate_series(0, 10) r(rank)
                    cross join lateral (select l.next_at from menzil.lane l where l.rank = r.rank and l.next_at > v_now
                                         order by l.next_at limit 1) l));
  return extract(epoch from v_due - v_now);   -- not "greatest(..., 0)", which makes 0 of null
end $$;
