-- One round of the job pulse: what was sent, what ended and what was tried since the last round is added up by minute and channel.
-- Every row is counted once. Ends and tries: the state names the transactions that are counted, and a round counts what the snapshot
-- shows of all others. Sends: ids are counted in their order. An id that is not there stays in gaps until it is, or until every
-- transaction that may have drawn it has ended. Counts and state are one transaction, so a round that fails counts nothing.
-- At most about p_limit rows of each kind. Returns how many rows of the pulse were written; 1000 or more: there is more to count.
create or replace function menzil._pulse(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set timezone = 'UTC' set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_found record;
  v_state menzil.pulse_state;
  v_last bigint;
  v_open record;
  v_upto bigint;
  v_sends record;
  v_ends record;
  v_tries record;
  v_gaps int8multirange;
  v_behind boolean;
  v_count integer := 0;
  v_writer xid;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return 0;   -- an older snapshot does not show messages whose senders have ended
  end if;
  select s as state, s.xmin = any (s.writer) as holds into v_found from menzil.pulse_state s for update skip locked;
  if not found then   -- another session counts, or a dump came without rows
    perform menzil._begin_pulse() where not exists (select 1 from menzil.pulse_state);
    return 0;
  end if;
  v_state := case when v_found.holds then v_found.state else menzil._rescue_pulse(v_found.state, v_now) end;
  -- Ids first, then open senders, then snapshots: if no sender is open, each snapshot shows all of these ids that will ever be there.
  v_last := menzil._register('menzil.message_id');
  select * into v_open from menzil._open_senders();
  v_state.sent_to := least(v_state.sent_to, v_last);
  -- While a sender stays open, rollbacks of others leave gaps that cannot be told apart from its own. There must not be too many.
  v_upto := case when (select count(*) from unnest(v_state.gaps)) < 5000 then least(v_last, v_state.sent_to + p_limit) else v_state.sent_to end;
  select * into v_ends from menzil._pulse_ends(v_state.ends, v_state.counts_since, v_state.sent_to, v_upto, p_limit);
  select * into v_sends from menzil._pulse_sends(v_state.sent_to, v_upto, v_ends.covered, v_state.gaps, p_limit);
  select * into v_tries from menzil._pulse_tries(v_state.tries, v_state.counts_since, p_limit);
  v_gaps := v_sends.gaps;
  if not v_sends.cut then
    if v_open.n = 0 then
      v_gaps := '{}';
    elsif v_state.mark_id is not null and v_open.since >= v_state.mark_xid::text::bigint then
      v_gaps := v_gaps - int8multirange(int8range(null, v_state.mark_id, '[]'));
      v_state.mark_id := null;
    end if;
    if v_open.n = 0 or v_state.mark_id is null and v_open.all_named then
      v_state.mark_id := v_upto;
      v_state.mark_xid := (v_open.next::text)::xid8;
    end if;
  end if;
  v_behind := v_sends.cut or v_upto < v_last or v_ends.cut or v_tries.cut;
  v_count := menzil._add_pulse(coalesce(v_sends.news, '{}') || coalesce(v_ends.news, '{}') || coalesce(v_tries.news, '{}') || menzil._take_tallies(p_limit));
  if v_state.gauged_at is distinct from date_trunc('minute', v_now) then
    v_count := v_count + menzil._gauge_pulse(v_now);
  end if;
  update menzil.pulse_state s set sent_to = v_upto, gaps = v_gaps, mark_id = v_state.mark_id, mark_xid = v_state.mark_xid, ends = v_ends.place,
      tries = v_tries.place, counts_since = v_state.counts_since, gauged_at = date_trunc('minute', v_now), counted_at = v_now,
      behind_since = case when v_behind then coalesce(v_state.behind_since, v_now) end,
      writer = array[pg_current_xact_id()::xid]
    returning s.xmin into v_writer;
  if v_writer <> pg_current_xact_id()::xid then   -- inside a savepoint, which has a transaction id of its own
    update menzil.pulse_state s set writer = s.writer || v_writer;
  end if;
  return case when v_behind then greatest(v_count, 1000) else least(v_count, 999) end;
end $$;
