drop function if exists menzil._ask_gates(tid[], integer[], text[], timestamptz[], bigint[], integer[]);

-- Asks the gates of these locked lanes how many messages each may give, up to its share.
-- A lane whose gate is shut leaves the line until the gate can open again; one whose gate is in use comes back at once.
create or replace function menzil._ask_gates(
  p_lanes tid[], p_channels integer[], p_names text[], p_low_dues timestamptz[], p_low_ids bigint[], p_rooms integer[],
  out lanes tid[], out channels integer[], out names text[], out low_dues timestamptz[], out low_ids bigint[], out rooms integer[], out epochs integer[],
  out limited boolean, out probes integer[]
)
language plpgsql as $$
#variable_conflict use_column
declare
  v_room integer;
  v_reopen timestamptz;
  v_gate menzil.gate;
  v_now timestamptz;
begin
  limited := false;
  for i in 1 .. cardinality(p_lanes) loop
    v_gate := null;
    v_room := p_rooms[i];
    if (select l.gated from menzil.lane l where l.ctid = p_lanes[i]) then
      select g.* into v_gate from menzil.gate g where g.channel_id = p_channels[i] for update skip locked;
      if not found then
        update menzil.lane l set next_at = clock_timestamp() + interval '1 ms' where l.ctid = p_lanes[i];
        continue;
      end if;
      v_now := clock_timestamp();   -- under the lock: what passed before it is older
      select r.room, r.reopen_at into v_room, v_reopen from menzil._gate_room(v_gate, v_now) r;
      if v_room <= 0 then
        update menzil.lane l set next_at = v_reopen where l.ctid = p_lanes[i];
        continue;
      end if;
      limited := limited or v_gate.max_concurrency is not null or v_gate.release_interval_ms > 0;
      if v_gate.circuit = 2 then
        probes := probes || p_channels[i];
      end if;
    end if;
    lanes := lanes || p_lanes[i];
    channels := channels || p_channels[i];
    names := names || p_names[i];
    low_dues := low_dues || p_low_dues[i];
    low_ids := low_ids || p_low_ids[i];
    rooms := rooms || least(p_rooms[i], v_room);
    epochs := epochs || case when v_gate.max_concurrency is not null then v_gate.epoch end;
  end loop;
end $$;

-- What a gate lets through now, and when to ask again if that is nothing (null: when a slot comes back, it resumes, or
-- the probe of its circuit is settled). Never more than release_count in any interval, wherever that interval starts.
create or replace function menzil._gate_room(p_gate menzil.gate, p_now timestamptz, out room integer, out reopen_at timestamptz)
language plpgsql stable as $$
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

-- Notes what went through the gates. Old releases are forgotten; when there are many in one interval they are noted
-- together, under the later time, which can only slow down.
create or replace function menzil._pass_gates(p_ids bigint[], p_now timestamptz) returns void
language plpgsql as $$
begin
  update menzil.gate g set
      in_flight = g.in_flight + r.counted,
      released_at = case when g.release_interval_ms > 0 then r.ats else '{}' end,
      released = case when g.release_interval_ms > 0 then r.ns else '{}' end
    from (select o.channel_id, u.counted, q.ats, q.ns
            from (select l.channel_id, count(*)::integer as passed, count(l.epoch)::integer as counted
                    from menzil.lease l where l.id = any (p_ids) group by l.channel_id) u
            cross join lateral (select o.* from menzil.gate o where o.channel_id = u.channel_id offset 0) o
            cross join lateral (
              select array_agg(h.at order by h.at) as ats, array_agg(h.n order by h.at) as ns
                from (select max(v.at) as at, sum(v.n)::integer as n
                        from (select w.at, w.n, row_number() over (order by w.at desc) as age
                                from unnest(o.released_at || p_now, o.released || u.passed) w(at, n)
                               where w.at > p_now - o.release_interval_ms * interval '1 ms') v
                       group by case when v.age <= 32 then v.age else 33 + v.age / 32 end) h) q
           where o.max_concurrency is not null or o.release_interval_ms > 0) r
   where g.channel_id = r.channel_id;
end $$;
