-- Leases that expired: the message becomes due at once, behind what its channel already has, and one failure is counted.
-- A lease that was extended, or is just being settled, goes back on watch.
create or replace function menzil._recover(p_now timestamptz, p_since timestamptz, p_limit integer) returns integer
language plpgsql as $$
declare
  v_ids bigint[];
  v_late bigint[];
  v_id bigint;
  v_count integer := 0;
begin
  with due as materialized (
    select b.ctid as at from menzil.lease_batch b where b.unlock_at >= p_since and b.unlock_at <= p_now
     order by b.unlock_at limit p_limit for update skip locked
  ), gone as (
    delete from menzil.lease_batch b where b.ctid = any (array(select d.at from due d)) returning b.ids
  )
  select array_agg(l.id) into v_ids
    from gone g cross join unnest(g.ids) u(id)
    cross join lateral (select l.id from menzil.lease l where l.id = u.id offset 0) l;
  if v_ids is null then
    return 0;
  end if;
  v_late := array(select l.id from menzil.lease l where l.id = any (v_ids) and l.unlock_at <= p_now order by l.id for update skip locked);
  insert into menzil.lease_batch (unlock_at, ids)
    select greatest(min(l.unlock_at), p_now + interval '100 ms'), array_agg(l.id)
      from menzil.lease l where l.id = any (v_ids) and l.id <> all (v_late) having count(*) > 0;
  if v_late = '{}' then
    return 0;
  end if;
  begin
    perform menzil._recover_these(v_late, p_now);
    return cardinality(v_late);
  exception when others then   -- one of them cannot be moved: it must not keep the others
    null;
  end;
  foreach v_id in array v_late loop
    begin
      perform menzil._recover_these(array[v_id], p_now);
      v_count := v_count + 1;
    exception when others then
      if not menzil._is_passing(sqlstate) then
        perform menzil._note_stuck(v_id, sqlerrm, p_now);
      end if;
      insert into menzil.lease_batch (unlock_at, ids)
        values (p_now + case when menzil._is_passing(sqlstate) then interval '1 s' else interval '5 min' end, array[v_id]);
    end;
  end loop;
  return v_count;
end $$;

create or replace function menzil._recover_these(p_ids bigint[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_lease record;
begin
  with gone as (
    delete from menzil.lease l where l.id = any (p_ids)
    returning l.id, l.attempt, l.channel_id, l.leased_at, l.worker, l.epoch
  )
  select array_agg(g.id) as ids, array_agg(g.attempt) as attempts, array_agg(g.channel_id) as channels, array_agg(g.leased_at) as leased_ats,
         array_agg(g.worker) as workers, array_agg(g.epoch) as epochs
    into v_lease from gone g;
  perform menzil._fail_leases(v_lease.ids, v_lease.attempts, v_lease.channels, v_lease.leased_ats, v_lease.workers,
    array_fill('[RETRYABLE] The lease expired before the message was settled.'::text, array[cardinality(v_lease.ids)]), null, 'recovered', p_now);
  perform menzil._free_slots(v_lease.channels, v_lease.epochs, p_now);
end $$;
