-- Reports one result of an endpoint by hand. A success closes its circuit in whatever state it is.
create or replace function menzil.update_circuit_breaker(p_endpoint_id bigint, p_success boolean) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
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
  perform menzil._catch_up();
  select g.* into v_gate from menzil.gate g where g.channel_id = p_endpoint_id for update;
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
    v_gate := menzil._turn_circuit(v_gate, v_old, v_now, (select s.circuit_breaker_cooldown from menzil.setting_value s));
  end if;
  perform menzil._store_circuit(v_gate);
  if v_gate.circuit <> v_old then
    perform menzil._release_lanes(v_gate.channel_id, v_now);
  end if;
end $$;

-- Closes the circuit of an endpoint and ends a rest it asked for, whatever its state.
create or replace function menzil.reset_circuit_breaker(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_endpoint menzil.channel := menzil._endpoint_for(p_name);
  v_now timestamptz := clock_timestamp();
  v_gate menzil.gate;
begin
  perform menzil._catch_up();
  select g.* into v_gate from menzil.gate g where g.channel_id = v_endpoint.id for update;
  update menzil.gate g set circuit = 0, failure_count = 0, opened_at = null, probe_at = null, wait_until = null where g.channel_id = v_endpoint.id;
  perform menzil._event('circuit.reset', 'endpoint', p_name,
    jsonb_build_object('circuit_state', (array['closed', 'half_open', 'open'])[v_gate.circuit + 1], 'failure_count', v_gate.failure_count),
    jsonb_build_object('circuit_state', 'closed', 'failure_count', 0), jsonb_build_object('id', v_endpoint.id));
  perform menzil._release_lanes(v_endpoint.id, v_now);
end $$;

-- Lanes that wait for their gate, without or with a time, get a turn now.
create or replace function menzil._release_lanes(p_channel_id integer, p_now timestamptz) returns void
language plpgsql as $$
begin
  update menzil.lane l set next_at = p_now where l.channel_id = p_channel_id and l.phase <> 0 and (l.next_at > p_now) is not false;
end $$;
