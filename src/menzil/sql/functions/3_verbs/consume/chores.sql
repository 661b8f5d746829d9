-- After the visits of some dequeue, about once a second: schedules fire and expired messages end, also where no worker runs.
-- Takes rows with SKIP LOCKED and locks no relation.
create or replace function menzil._chores(p_now timestamptz) returns void
language plpgsql as $$
begin
  if exists (select 1 from menzil.schedule s where not s.paused and s.next_at <= p_now) and not menzil._is_copy() then
    perform menzil.schedule_fire_due(100);
  end if;
  if exists (select 1 from menzil.expiring e where e.expires_at <= p_now) then
    perform menzil._expire(p_now, 100);
  end if;
  if exists (select 1 from menzil.channel c where c.released_at is not null and c.dropped_at is null) then
    perform menzil._finish_releases();
  end if;
end $$;
