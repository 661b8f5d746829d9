-- What a gate lets through now, and when to ask again if that is nothing (null: when a slot comes back, the channel resumes,
-- or the probe of its circuit is settled). Never more than release_count in any interval, wherever that interval starts.
create or replace function menzil._gate_room(p_gate menzil.gate, p_now timestamptz, out room integer, out reopen_at timestamptz)
language plpgsql as $$
declare
  v_since timestamptz;
  v_used bigint;
begin
  if p_gate.paused or p_gate.circuit = 1 then
    room := 0;
    return;
  elsif p_gate.circuit = 2 and p_gate.probe_at > p_now or p_gate.wait_until > p_now then
    room := 0;
    reopen_at := greatest(case when p_gate.circuit = 2 then p_gate.probe_at end, p_gate.wait_until);
    return;
  end if;
  room := coalesce(p_gate.max_concurrency - p_gate.in_flight, 2147483647);
  if p_gate.counts_from is not null and room > 0 and p_gate.max_concurrency is not null then
    -- Leases from before the limit was set: the gate does not count them, so they are counted here until they are over.
    v_used := menzil._uncounted(p_gate.channel_id, p_gate.epoch);
    room := room - v_used;
    if v_used = 0 then
      update menzil.gate g set counts_from = null where g.channel_id = p_gate.channel_id;   -- the gate is locked
    elsif room <= 0 then
      reopen_at := p_now + interval '2 ms';
      return;
    end if;
  end if;
  if p_gate.circuit = 2 then
    room := least(room, 1);   -- one probe
  end if;
  if p_gate.release_interval_ms > 0 and room > 0 then
    v_since := p_now - p_gate.release_interval_ms * interval '1 ms';
    select coalesce(sum(u.n), 0), min(u.at) + p_gate.release_interval_ms * interval '1 ms' into v_used, reopen_at
      from unnest(p_gate.released_at, p_gate.released) u(at, n) where u.at > v_since;
    room := least(room, p_gate.release_count - v_used);
  end if;
end $$;
