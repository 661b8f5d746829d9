-- What one line of news makes of a gate. Writes nothing: a fold stores the result, a look at an endpoint only shows it.
--   closed     failures in a row open it, a success starts the count again
--   open       rests until probe_at; what was in flight when it opened changes nothing any more
--   half-open  only the probe counts: the one lease that is not older than probe_at
-- Times are those of the settles that told the news.
create or replace function menzil._hear_news(p_gate menzil.gate, p_line menzil.line, p_threshold integer, p_cooldown integer) returns menzil.gate
language plpgsql immutable as $$
declare
  v_old smallint := p_gate.circuit;
  v_probe boolean := p_gate.circuit = 1 and p_line.news_at >= p_gate.probe_at;
begin
  p_gate.wait_until := greatest(p_gate.wait_until, p_line.wait_until);
  case p_line.news
    when 1 then
      p_gate.last_success_at := greatest(p_gate.last_success_at, p_line.due_at);
      if v_probe or p_gate.circuit = 0 then
        p_gate.circuit := 0;
        p_gate.failure_count := 0;
      end if;
    when 2 then
      p_gate.last_failure_at := greatest(p_gate.last_failure_at, p_line.due_at);
      p_gate.failure_count := least(p_gate.failure_count::bigint + p_line.news_count, 2147483647);
      if v_probe or p_gate.circuit = 0 and p_gate.failure_count >= p_threshold then
        p_gate.circuit := 2;
      end if;
    when 3 then
      if v_probe then   -- it refused one message for good, so it is there
        p_gate.circuit := 0;
        p_gate.failure_count := 0;
      end if;
    else
      if v_probe then   -- nothing was learned: the next probe may go at once
        p_gate.circuit := 2;
      end if;
  end case;
  if p_gate.circuit <> v_old then
    p_gate := menzil._date_circuit(p_gate, p_line.due_at, case when p_line.news = 2 then p_cooldown else 0 end);
  end if;
  return p_gate;
end $$;
