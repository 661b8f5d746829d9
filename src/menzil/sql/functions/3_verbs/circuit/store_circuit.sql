create or replace function menzil._store_circuit(p_gate menzil.gate) returns void
language plpgsql as $$
begin
  update menzil.gate g set circuit = p_gate.circuit, failure_count = p_gate.failure_count, opened_at = p_gate.opened_at, probe_at = p_gate.probe_at,
      wait_until = p_gate.wait_until, last_success_at = p_gate.last_success_at, last_failure_at = p_gate.last_failure_at
   where g.channel_id = p_gate.channel_id;
end $$;
