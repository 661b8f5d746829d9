-- An open transaction that holds the message, its lane or its gate: a cancel, a purge, a change of limits or a dequeue left open.
-- Consumers pass over what it holds. Found by the xmax of the rows, so nothing is locked here.
create or replace function menzil._why_held(p_message menzil.sent, p_xmax xid, p_now timestamptz) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_held record := menzil._holder(p_xmax, p_now);
  v_what text := 'the message itself: it may be cancelling it';
begin
  if v_held.who is null then
    v_what := 'the lane of its channel and priority: a dequeue or a change of the channel that was left open';
    v_held := menzil._holder((select l.xmax from menzil.lane l where l.channel_id = p_message.channel_id and l.rank = p_message.rank order by l.v desc limit 1), p_now);
  end if;
  if v_held.who is null then
    v_what := 'the gate of its channel: a dequeue or a change of the channel that was left open';
    v_held := menzil._holder((select g.xmax from menzil.gate g where g.channel_id = p_message.channel_id), p_now);
  end if;
  if v_held.who is not null then
    -- A prepared transaction has no process, and outlives all: its coordinator decides, or an operator in its place.
    return query select 'held', case when v_held.pid is not null then format('An open transaction of %s holds %s. Consumers leave it out until that transaction ends.', v_held.who, v_what)
                                     else format('The %s holds %s. Consumers leave it out until COMMIT PREPARED or ROLLBACK PREPARED ends it.', v_held.who, v_what) end,
      v_held.since, null::timestamptz, v_held.who, 'psql "$MENZIL_DSN" -c ''select pg_terminate_backend(' || v_held.pid || ')''';
  end if;
end $$;
