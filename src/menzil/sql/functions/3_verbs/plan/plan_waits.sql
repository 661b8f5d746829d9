-- Whether a channel takes the messages of a plan now. sentence: why not yet. gone: it never will. most: so many; while its circuit is
-- open that is one message for each probe, because without a message to probe with a circuit stays open for ever.
create or replace function menzil._plan_waits(p_channel_id integer, p_probed_at timestamptz, p_now timestamptz,
  out sentence text, out gone boolean, out most integer, out probe_at timestamptz)
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_channel menzil.channel;
  v_gate menzil.gate;
  v_name text;
begin
  select c.* into v_channel from menzil.channel c where c.id = p_channel_id;
  select g.* into v_gate from menzil.gate g where g.channel_id = p_channel_id;
  v_name := quote_literal(v_channel.name);
  gone := v_channel.dropped_at is not null or v_channel.released_at is not null;
  sentence := case
    when v_channel.dropped_at is not null then format('Channel %s is gone.', v_name)
    when v_channel.released_at is not null then format('Channel %s is released and takes no new messages.', v_name)
    when not v_channel.enabled then format('Endpoint %s is disabled.', v_name)
    when v_channel.paused then format('Channel %s is paused.', v_name)
    when v_gate.wait_until > p_now then format('Endpoint %s asked for a rest until %s UTC.', v_name, to_char(v_gate.wait_until at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
    when v_gate.circuit = 2 and v_gate.probe_at > p_now then format('The circuit of endpoint %s is open until %s UTC.', v_name, to_char(v_gate.probe_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
    when v_gate.circuit = 1 or v_gate.circuit = 2 and v_gate.probe_at = p_probed_at then format('The circuit of endpoint %s is open, and one message probes it.', v_name) end;
  if v_gate.circuit = 2 then
    most := 1;
    probe_at := v_gate.probe_at;
  end if;
end $$;
