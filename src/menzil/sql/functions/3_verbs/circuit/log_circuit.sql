create or replace function menzil._log_circuit(p_gate menzil.gate, p_old smallint) returns void
language sql as $$
  select menzil._event('circuit.' || (array['closed', 'half_open', 'opened'])[p_gate.circuit + 1], 'endpoint', c.name,
      jsonb_build_object('circuit_state', (array['closed', 'half_open', 'open'])[p_old + 1]),
      jsonb_build_object('circuit_state', (array['closed', 'half_open', 'open'])[p_gate.circuit + 1]),
      jsonb_build_object('id', c.id, 'failure_count', p_gate.failure_count, 'probe_at', p_gate.probe_at))
    from menzil.channel c where c.id = p_gate.channel_id
$$;
