-- The times of a circuit that has just changed.
create or replace function menzil._date_circuit(p_gate menzil.gate, p_now timestamptz, p_cooldown integer) returns menzil.gate
language plpgsql immutable as $$
begin
  p_gate.opened_at := case when p_gate.circuit = 2 then p_now when p_gate.circuit = 1 then p_gate.opened_at end;
  p_gate.probe_at := case p_gate.circuit when 2 then p_now + p_cooldown * interval '1 s' when 1 then p_now end;
  return p_gate;
end $$;
