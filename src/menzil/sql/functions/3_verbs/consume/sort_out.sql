-- Of the messages that a visit took: those that an open transaction may be cancelling wait aside for 20 ms, cancelled ones
-- drop out, expired ones end. An expired one that cannot be ended is set aside: it must not fail the dequeue. Returns the
-- rest, in the same order.
create or replace function menzil._sort_out(p_ids bigint[], p_flags smallint, p_now timestamptz, p_open boolean, p_tombs boolean) returns bigint[]
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_ids bigint[] := p_ids;
  v_out bigint[];
  v_id bigint;
begin
  if p_open then
    v_ids := array(select m.id from unnest(p_ids) with ordinality u(id, n)
                     cross join lateral (select m.id from menzil.message m where m.id = u.id for update skip locked offset 0) m order by u.n);
    if cardinality(v_ids) < cardinality(p_ids) then
      perform menzil._set_aside(array(select u.id from unnest(p_ids) u(id) where u.id not in (select k.id from unnest(v_ids) k(id))), p_flags, p_now);
    end if;
  end if;
  if p_open or p_tombs then
    with gone as (
      delete from menzil.withdrawn w where w.id = any (v_ids) returning w.id   -- a new snapshot, after the locks
    )
    select array_agg(g.id) into v_out from gone g;
    if v_out is not null then
      v_ids := array(select u.id from unnest(v_ids) with ordinality u(id, n) where u.id not in (select o.id from unnest(v_out) o(id)) order by u.n);
      if p_flags & 4 <> 0 then   -- a message that was just leaving the schedule when it was cancelled took its key afterwards
        perform menzil._free_keys(v_out);
      end if;
    end if;
  end if;
  if p_flags & 2 <> 0 then
    v_out := array(select m.id from unnest(v_ids) u(id) cross join lateral (select m.id, m.expires_at from menzil.message m where m.id = u.id offset 0) m
                    where m.expires_at <= p_now);
    if v_out <> '{}' then
      begin
        perform menzil._end_waiting(v_out, 'expired', p_now);
      exception when others then
        foreach v_id in array v_out loop
          begin
            perform menzil._end_waiting(array[v_id], 'expired', p_now);
          exception when others then
            if not menzil._is_passing(sqlstate) then
              perform menzil._note_stuck(v_id, sqlerrm, p_now);
            end if;
            perform menzil._set_aside(array[v_id], p_flags, p_now, case when menzil._is_passing(sqlstate) then interval '1 s' else interval '5 min' end);
          end;
        end loop;
      end;
      v_ids := array(select u.id from unnest(v_ids) with ordinality u(id, n) where u.id not in (select o.id from unnest(v_out) o(id)) order by u.n);
    end if;
  end if;
  return v_ids;
end $$;
