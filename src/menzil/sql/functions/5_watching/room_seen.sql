-- How many messages a gate, as menzil._gates_seen shows it, lets through now, and how its rate window stands. The same answer as
-- menzil._gate_room, which also writes. next_at: when the window has room again; null: it has room, or there is no rate limit.
create or replace function menzil._room_seen(p_gate menzil.gate, p_now timestamptz, out room integer, out used bigint, out next_at timestamptz)
language plpgsql immutable as $$
begin
  room := case when p_gate.paused or p_gate.circuit = 1 or p_gate.circuit = 2 and p_gate.probe_at > p_now or p_gate.wait_until > p_now then 0
               else greatest(0, coalesce(p_gate.max_concurrency - p_gate.in_flight, 2147483647)) end;
  if p_gate.circuit = 2 then
    room := least(room, 1);   -- one probe
  end if;
  if p_gate.release_interval_ms > 0 then
    select coalesce(sum(u.n), 0) into used
      from unnest(p_gate.released_at, p_gate.released) u(at, n) where u.at > p_now - p_gate.release_interval_ms * interval '1 ms';
    room := least(room, greatest(0, p_gate.release_count - used));
    if used >= p_gate.release_count then
      -- After the limit was lowered, the first leases that leave the window may not be enough.
      select min(u.at) filter (where coalesce(u.later, 0) < p_gate.release_count) + p_gate.release_interval_ms * interval '1 ms' into next_at
        from (select u.at, sum(u.n) over (order by u.at groups between 1 following and unbounded following) as later
                from unnest(p_gate.released_at, p_gate.released) u(at, n) where u.at > p_now - p_gate.release_interval_ms * interval '1 ms') u;
    end if;
  end if;
end $$;
