-- One round of the job lookups: correlation ids and parents of messages that were sent since the last round go into tables of their
-- own. An id that is not there stays in gaps until it is, or until every transaction that may have drawn it has ended, as in
-- menzil._pulse. Rows and state are one transaction: a snapshot that shows a state shows all rows that it speaks of.
-- At most p_limit new messages. Returns how many were looked at; 1000 or more: there may be others.
create or replace function menzil._write_lookups(p_limit integer) returns bigint
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_state menzil.lookup_state;
  v_last bigint;
  v_open record;
  v_new record;
  v_gaps int8multirange;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return 0;   -- an older snapshot does not show messages whose senders have ended
  end if;
  select s.* into v_state from menzil.lookup_state s order by s.id desc limit 1 for update skip locked;
  if not found then   -- another session writes, or a dump came without rows
    insert into menzil.lookup_state (written_to, told_from)
      select 0, menzil._register('menzil.message_id') where not exists (select 1 from menzil.lookup_state);
    return 0;
  end if;
  -- Ids first, then open senders, then the snapshot: if no sender is open, it shows all of these ids that will ever be there.
  v_last := menzil._register('menzil.message_id');
  v_state.written_to := least(v_state.written_to, v_last);
  if v_state.written_to = v_last and v_state.gaps = '{}' then
    return 0;
  end if;
  select * into v_open from menzil._open_senders();
  -- While a sender stays open, rollbacks of others leave gaps that cannot be told apart from its own. There must not be too many.
  if (select count(*) from unnest(v_state.gaps)) >= 5000 then
    v_last := v_state.written_to;
  end if;
  select * into v_new from menzil._new_lookups(v_state.written_to, v_last, v_state.gaps, p_limit);
  insert into menzil.correlated (message_id, correlation_id)
    select u.id, u.correlation_id from unnest(v_new.ids, v_new.correlation_ids) u(id, correlation_id)
     order by 2;   -- neighbours in the index are written one after the other
  insert into menzil.lineage (message_id, parent_id)
    select u.id, u.parent_id from unnest(v_new.child_ids, v_new.parent_ids) u(id, parent_id)
     where not exists (select 1 from menzil.lineage l where l.parent_id = u.parent_id and l.message_id = u.id);
  v_gaps := v_new.gaps;
  if v_state.mark_xid > v_open.next + 1000000 then   -- of another cluster, whose senders are not here
    v_state.mark_id := null;
  end if;
  if not v_new.cut then
    if v_open.n = 0 then
      v_gaps := '{}';
    elsif v_state.mark_id is not null and v_open.since >= v_state.mark_xid then
      v_gaps := v_gaps - int8multirange(int8range(null, v_state.mark_id, '[]'));
      v_state.mark_id := null;
    end if;
    if v_open.n = 0 or v_state.mark_id is null and v_open.all_named then
      v_state.mark_id := v_new.upto;
      v_state.mark_xid := v_open.next;
    end if;
  end if;
  delete from menzil.lookup_state s where s.id = v_state.id;
  insert into menzil.lookup_state (written_to, gaps, mark_id, mark_xid, told_from)
    values (v_new.upto, v_gaps, v_state.mark_id, v_state.mark_xid, v_state.told_from);
  return case when v_new.upto < v_last or v_new.cut then greatest(v_new.upto - v_state.written_to, 1000) else least(v_new.upto - v_state.written_to, 999) end;
end $$;
