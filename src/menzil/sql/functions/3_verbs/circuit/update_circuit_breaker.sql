-- Reports one result of an endpoint by hand. A success closes its circuit from every state.
create or replace function menzil.update_circuit_breaker(p_endpoint_id bigint, p_success boolean) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
  v_gate menzil.gate;
  v_old smallint;
begin
  if p_endpoint_id is null or p_success is null then
    perform menzil._refuse_null('An endpoint id and a result');
  elsif not exists (select 1 from menzil.channel c where c.id = p_endpoint_id and c.protocol is not null and c.dropped_at is null) then
    raise exception using errcode = '42704', message = format('There is no endpoint with id %s.', p_endpoint_id), hint = 'The view menzil.endpoints lists them.';
  end if;
  perform menzil._hold_channel(p_endpoint_id::integer);
  perform menzil._fold_channel(p_endpoint_id::integer, v_now);   -- what settles told before
  select g.* into v_gate from menzil.gate g where g.channel_id = p_endpoint_id;
  v_old := v_gate.circuit;
  if p_success then
    v_gate.circuit := 0;
    v_gate.failure_count := 0;
    v_gate.last_success_at := v_now;
  else
    v_gate.failure_count := v_gate.failure_count + 1;
    v_gate.last_failure_at := v_now;
    if v_gate.circuit = 1 or v_gate.circuit = 0 and v_gate.failure_count >= (select s.circuit_breaker_threshold from menzil.setting_value s) then
      v_gate.circuit := 2;
    end if;
  end if;
  if v_gate.circuit <> v_old then
    v_gate := menzil._date_circuit(v_gate, v_now, (select s.circuit_breaker_cooldown from menzil.setting_value s));
    perform menzil._log_circuit(v_gate, v_old);
    perform menzil._release_lanes(v_gate.channel_id, v_now);
  end if;
  perform menzil._store_circuit(v_gate);
end $$;
