-- Notes what went through a locked gate. Old releases are forgotten. The newest 32 are noted one by one, older ones of one part of the
-- interval together, under the later time: that can only slow down, and by a 32nd of the interval at most. The parts lie fixed on the
-- clock: releases that were noted together are not moved again.
create or replace function menzil._pass_gate(p_gate menzil.gate, p_passed integer, p_now timestamptz) returns void
language plpgsql as $$
begin
  if p_gate.release_interval_ms = 0 then
    update menzil.gate g set in_flight = g.in_flight + p_passed where g.channel_id = p_gate.channel_id and g.max_concurrency is not null;
    return;
  end if;
  update menzil.gate g set
      in_flight = g.in_flight + case when g.max_concurrency is not null then p_passed else 0 end, released_at = q.ats, released = q.ns
    from (select array_agg(h.at order by h.at) as ats, array_agg(h.n order by h.at) as ns
            from (select max(v.at) as at, sum(v.n)::integer as n
                    from (select w.at, w.n, row_number() over (order by w.at desc) as age
                            from unnest(p_gate.released_at || p_now, p_gate.released || p_passed) w(at, n)
                           where w.at > p_now - p_gate.release_interval_ms * interval '1 ms') v
                   group by case when v.age <= 32 then v.age else - menzil._microseconds(v.at) / (p_gate.release_interval_ms * 1000 / 32) end) h) q
   where g.channel_id = p_gate.channel_id;
end $$;
