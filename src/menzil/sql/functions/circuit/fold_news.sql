-- What the news of an endpoint, in the order in which it was written, make of its circuit:
--   closed     failures in a row open it, a success starts the count again
--   open       rests until probe_at; what was in flight when it opened changes nothing any more
--   half-open  only the probe counts: the one lease that is not older than probe_at
-- Times are those of the settles that told the news (p_tolds). Nobody waits: news of a gate in use go back into the log.
create or replace function menzil._fold_news(
  p_now timestamptz, p_channel_id integer, p_tolds timestamptz[], p_kinds smallint[], p_counts integer[], p_ats timestamptz[],
  p_waits timestamptz[]
) returns void
language plpgsql as $$
declare
  v_gate menzil.gate;
  v_old smallint;
  v_threshold integer;
  v_cooldown integer;
  v_probe boolean;
  v_changed boolean := false;
begin
  select g.* into v_gate from menzil.gate g where g.channel_id = p_channel_id for update skip locked;
  if not found then
    insert into menzil.arrival (generation, channel_id, due_at, news, news_count, news_at, wait_until)
      select menzil._generation(p_now), p_channel_id, u.told, u.kind, u.count, u.at, u.wait
        from unnest(p_tolds, p_kinds, p_counts, p_ats, p_waits) with ordinality u(told, kind, count, at, wait, n) order by u.n;
    return;
  end if;
  select s.circuit_breaker_threshold, s.circuit_breaker_cooldown into v_threshold, v_cooldown from menzil.setting_value s;
  for i in 1 .. cardinality(p_kinds) loop
    v_old := v_gate.circuit;
    v_probe := v_gate.circuit = 1 and p_ats[i] >= v_gate.probe_at;
    v_gate.wait_until := greatest(v_gate.wait_until, p_waits[i]);
    case p_kinds[i]
      when 1 then
        v_gate.last_success_at := greatest(v_gate.last_success_at, p_tolds[i]);
        if v_probe or v_gate.circuit = 0 then
          v_gate.circuit := 0;
          v_gate.failure_count := 0;
        end if;
      when 2 then
        v_gate.last_failure_at := greatest(v_gate.last_failure_at, p_tolds[i]);
        v_gate.failure_count := least(v_gate.failure_count::bigint + p_counts[i], 2147483647);
        if v_probe or v_gate.circuit = 0 and v_gate.failure_count >= v_threshold then
          v_gate.circuit := 2;
        end if;
      when 3 then
        if v_probe then   -- it refused one message for good, so it is there
          v_gate.circuit := 0;
          v_gate.failure_count := 0;
        end if;
      else
        if v_probe then   -- nobody knows: the next probe may go at once
          v_gate.circuit := 2;
        end if;
    end case;
    if v_gate.circuit <> v_old then
      v_changed := true;
      v_gate := menzil._turn_circuit(v_gate, v_old, p_tolds[i], case when p_kinds[i] = 2 then v_cooldown else 0 end);
    end if;
  end loop;
  perform menzil._store_circuit(v_gate);
  if v_changed then   -- lanes that the probe held ask again
    perform menzil._wake_lanes(array[p_channel_id], p_now);
  end if;
end $$;

-- Notes when a circuit changed, and tells the event log.
create or replace function menzil._turn_circuit(p_gate menzil.gate, p_old smallint, p_now timestamptz, p_cooldown integer) returns menzil.gate
language plpgsql as $$
declare
  v_states text[] := '{closed,half_open,open}';
begin
  p_gate.opened_at := case when p_gate.circuit = 2 then p_now when p_gate.circuit = 1 then p_gate.opened_at end;
  p_gate.probe_at := case p_gate.circuit when 2 then p_now + p_cooldown * interval '1 s' when 1 then p_now end;
  perform menzil._event('circuit.' || case p_gate.circuit when 2 then 'opened' when 1 then 'half_open' else 'closed' end, 'endpoint',
    (select c.name from menzil.channel c where c.id = p_gate.channel_id),
    jsonb_build_object('circuit_state', v_states[p_old + 1]), jsonb_build_object('circuit_state', v_states[p_gate.circuit + 1]),
    jsonb_build_object('id', p_gate.channel_id, 'failure_count', p_gate.failure_count, 'probe_at', p_gate.probe_at));
  return p_gate;
end $$;

create or replace function menzil._store_circuit(p_gate menzil.gate) returns void
language plpgsql as $$
begin
  update menzil.gate g set circuit = p_gate.circuit, failure_count = p_gate.failure_count, opened_at = p_gate.opened_at, probe_at = p_gate.probe_at,
      wait_until = p_gate.wait_until, last_success_at = p_gate.last_success_at, last_failure_at = p_gate.last_failure_at
   where g.channel_id = p_gate.channel_id;
end $$;

-- An open circuit whose rest is over let one message through: it is half-open until that one is settled. The gate has
-- been locked since it was asked, so nobody else sent a probe.
create or replace function menzil._send_probes(p_ids bigint[], p_channels integer[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_gate menzil.gate;
begin
  for v_gate in
    select g.* from menzil.gate g
     where g.channel_id = any (p_channels) and g.circuit = 2
       and exists (select 1 from menzil.lease l where l.id = any (p_ids) and l.channel_id = g.channel_id)
  loop
    v_gate.circuit := 1;
    perform menzil._store_circuit(menzil._turn_circuit(v_gate, 2::smallint, p_now, 0));
  end loop;
end $$;
