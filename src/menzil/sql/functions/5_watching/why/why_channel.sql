-- What holds a channel, for all of its messages: switched off, its circuit, a rest, its limits; and whether a worker serves it.
create or replace function menzil._why_channel(p_channel menzil.channel, p_now timestamptz) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_name text := quote_literal(p_channel.name);
  v_what text := case when p_channel.protocol is null then 'Channel ' else 'Endpoint ' end || v_name;
  v_cli text := case when p_channel.protocol is null then 'channel' else 'endpoint' end;
  v_gate menzil.gate;
  v_room record;
  v_probe bigint;
begin
  select g.* into v_gate from menzil._gates_seen(array[p_channel.id], p_now) g;
  v_room := menzil._room_seen(v_gate, p_now);
  if not p_channel.enabled then
    return query select 'endpoint_disabled', format('%s is disabled%s: it takes no messages and hands out none.', v_what, menzil._by_since(a.actor, a.at)),
      a.at, null::timestamptz, a.actor, menzil._command('endpoint enable', p_channel.name) from menzil._last_act('endpoint', p_channel.name, 'endpoint.disabled') a;
  end if;
  if p_channel.paused then
    return query select 'channel_paused', format('%s is paused%s.', v_what, menzil._by_since(a.actor, a.at)),
      a.at, null::timestamptz, a.actor, menzil._command(v_cli || ' resume', p_channel.name) from menzil._last_act('channel', p_channel.name, 'channel.paused') a;
  end if;
  if p_channel.released_at is not null then
    return query select 'channel_released', format('%s was released at %s: it takes no new messages, hands out those it has, and disappears then.',
      v_what, menzil._time_text(p_channel.released_at)), p_channel.released_at, null::timestamptz, null::text, null::text;
  end if;
  if v_gate.circuit = 2 then
    return query select 'circuit_open', format('The circuit of %s is open after %s in a row: %s.', lower(left(v_what, 1)) || substr(v_what, 2),
        case v_gate.failure_count when 1 then '1 failure' else v_gate.failure_count || ' failures' end,
        case when v_gate.probe_at > p_now then 'one message may probe it at ' || menzil._time_text(v_gate.probe_at) else 'the next message that is leased probes it' end),
      v_gate.opened_at, v_gate.probe_at, null::text, menzil._command('endpoint reset', p_channel.name);
  elsif v_gate.circuit = 1 then
    v_probe := (select coalesce(l.ids[1], l.lo_id) from menzil.lease l where l.channel_id = p_channel.id and l.leased_at >= v_gate.probe_at order by l.leased_at limit 1);
    return query select 'circuit_probing', format('The circuit of %s is half open: %s probes it, and the others wait for the outcome.', lower(left(v_what, 1)) || substr(v_what, 2),
        coalesce('message ' || v_probe, 'one message')), v_gate.probe_at, null::timestamptz, v_probe::text, menzil._command('endpoint reset', p_channel.name);
  end if;
  if v_gate.wait_until > p_now then
    return query select 'endpoint_resting', format('%s asked for a rest until %s (Retry-After).', v_what, menzil._time_text(v_gate.wait_until)),
      v_gate.last_failure_at, v_gate.wait_until, null::text, menzil._command('endpoint reset', p_channel.name);
  end if;
  if v_gate.in_flight >= v_gate.max_concurrency then
    return query select 'concurrency_full', format('%s has %s of %s messages in flight: the next one starts when one of them ends.', v_what, v_gate.in_flight, v_gate.max_concurrency),
      null::timestamptz, null::timestamptz, null::text,
      menzil._command('channel set', p_channel.name, ' --max-concurrency ' || v_gate.in_flight + 1);
  end if;
  if v_room.next_at is not null then
    return query select 'rate_full', format('%s has handed out %s of %s messages in %s s: the next may go at %s.', v_what, v_room.used, v_gate.release_count,
        trim_scale(v_gate.release_interval_ms / 1000.0), menzil._time_text(v_room.next_at)), null::timestamptz, v_room.next_at, null::text,
      menzil._command('channel set', p_channel.name, ' --release-count ' || v_room.used + 1);
  end if;
  return query select w.* from menzil._why_no_worker(p_channel, p_now) w;
end $$;
