-- Closes the circuit of an endpoint and ends a rest it asked for, in every state of the circuit.
create or replace function menzil.reset_circuit_breaker(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_endpoint menzil.channel := menzil._endpoint_for(p_name);
  v_now timestamptz := clock_timestamp();
  v_gate menzil.gate;
begin
  perform menzil._hold_channel(v_endpoint.id);
  perform menzil._fold_channel(v_endpoint.id, v_now);   -- what settles told before
  select g.* into v_gate from menzil.gate g where g.channel_id = v_endpoint.id;
  update menzil.gate g set circuit = 0, failure_count = 0, opened_at = null, probe_at = null, wait_until = null where g.channel_id = v_endpoint.id;
  perform menzil._event('circuit.reset', 'endpoint', p_name,
    jsonb_build_object('circuit_state', (array['closed', 'half_open', 'open'])[v_gate.circuit + 1], 'failure_count', v_gate.failure_count),
    jsonb_build_object('circuit_state', 'closed', 'failure_count', 0), jsonb_build_object('id', v_endpoint.id));
  perform menzil._release_lanes(v_endpoint.id, v_now);
end $$;
