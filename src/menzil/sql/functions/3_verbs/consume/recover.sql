-- Leases that ran out: their messages are due at once, at the position they had, and one failure is counted. A lease that
-- was extended is watched again; a lease that another transaction is settling is left alone. A message that cannot be
-- moved keeps nothing else from being recovered: it stays in flight, and its lease is tried again later. Where a timeout
-- threatens, a lease of thousands is taken back in parts, and the rest of it is left to the next dequeue.
create or replace function menzil._recover(p_now timestamptz, p_since timestamptz, p_limit integer) returns integer
language plpgsql as $$
declare
  v_lease menzil.lease;
  v_id bigint;
  v_later interval;
  v_count integer := 0;
  v_most integer := greatest(256, menzil._at_once());
begin
  for v_lease in
    select l.* from menzil.lease l where l.watch_at >= p_since and l.watch_at <= p_now order by l.watch_at limit p_limit for update skip locked
  loop
    if v_lease.unlock_at > p_now then
      update menzil.lease l set watch_at = v_lease.unlock_at where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
      continue;
    end if;
    if v_lease.ids is null then
      v_lease.ids := array(select generate_series(v_lease.lo_id, v_lease.hi_id));
    end if;
    v_later := null;
    while v_lease.ids <> '{}' and v_later is null loop
      if v_count > 0 and menzil._is_late() then
        update menzil.lease l set watch_at = p_now where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
        return v_count;
      end if;
      begin
        if cardinality(v_lease.ids) > v_most then
          update menzil.lease l set ids = v_lease.ids[v_most + 1 :] where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
        else
          delete from menzil.lease l where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
        end if;
        perform menzil._recover_these(v_lease, array(select u.id from unnest(v_lease.ids[: v_most]) u(id) order by u.id), p_now);
        v_count := v_count + least(v_most, cardinality(v_lease.ids));
        v_lease.ids := v_lease.ids[v_most + 1 :];
      exception when others then
        v_later := '1 s';
      end;
    end loop;
    continue when v_later is null;
    -- One of them cannot be moved. It must not keep the others: they are moved one by one.
    foreach v_id in array v_lease.ids loop
      if v_count > 0 and menzil._is_late() then
        update menzil.lease l set watch_at = p_now where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
        return v_count;
      end if;
      begin
        update menzil.lease l set ids = array_remove(coalesce(l.ids, v_lease.ids), v_id) where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
        delete from menzil.lease l where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt and l.ids = '{}';
        perform menzil._recover_these(v_lease, array[v_id], p_now);
        v_count := v_count + 1;
      exception when others then
        if not menzil._is_passing(sqlstate) then
          perform menzil._note_stuck(v_id, sqlerrm, p_now);
          v_later := '5 min';
        end if;
      end;
    end loop;
    update menzil.lease l set watch_at = p_now + v_later where l.lo_id = v_lease.lo_id and l.attempt = v_lease.attempt;
  end loop;
  return v_count;
end $$;

create or replace function menzil._recover_these(p_lease menzil.lease, p_ids bigint[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_error constant text := '[RETRYABLE] The lease expired before the message was settled.';
begin
  perform menzil._fail_these(row(p_ids, p_lease.attempt, p_lease.leased_at, p_lease.worker, p_lease.channel_id, p_lease.epoch, p_lease.flags)::menzil.taken,
    array(select row(u.id, v_error, false, false, null, null, false, null)::menzil.failure from unnest(p_ids) u(id)), 'recovered', p_now);
end $$;
