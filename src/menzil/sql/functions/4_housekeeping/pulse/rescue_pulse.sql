-- A restore wrote the state anew: its transaction ids are those of another cluster. Ids of messages are the same here, and senders of
-- gaps are not. Ends and tries count from now on; what a restore brought along is left out by the time it ended, because its
-- transaction ids may be given out again.
create or replace function menzil._rescue_pulse(p_state menzil.pulse_state, p_now timestamptz) returns menzil.pulse_state
language plpgsql set enable_seqscan = off set jit = off as $$
begin
  p_state.ends := menzil._next_place(null, pg_current_snapshot(), null, null);
  p_state.tries := p_state.ends;
  p_state.gaps := '{}';
  p_state.mark_id := null;
  p_state.mark_xid := null;
  p_state.counts_since := greatest(p_now, (select max(d.ended_at) from (select d.ended_at from menzil.done d order by d.ended_xid desc limit 1000) d),
                                   (select max(t.ended_at) from (select t.ended_at from menzil.attempt t where t.xid is not null order by t.xid desc limit 1000) t));
  return p_state;
end $$;
