-- Folds the news of endpoints into their gates, which are locked: by the order in which the settles told them. menzil._hear_news
-- says what one line changes.
create or replace function menzil._fold_news(p_now timestamptz, p_lines menzil.line[]) returns void
language plpgsql as $$
declare
  v_gate menzil.gate;
  v_channel integer;
  v_line menzil.line;
  v_old smallint;
  v_threshold integer;
  v_cooldown integer;
  v_changed boolean;
begin
  if not exists (select 1 from unnest(p_lines) t where t.news is not null) then
    return;
  end if;
  select s.circuit_breaker_threshold, s.circuit_breaker_cooldown into v_threshold, v_cooldown from menzil.setting_value s;
  for v_channel in select distinct t.channel_id from unnest(p_lines) t where t.news is not null order by 1 loop
    select g.* into v_gate from menzil.gate g where g.channel_id = v_channel;
    v_changed := false;
    for v_line in select t.* from unnest(p_lines) t where t.channel_id = v_channel and t.news is not null order by t.due_at, t.news = 1 loop
      v_old := v_gate.circuit;
      v_gate := menzil._hear_news(v_gate, v_line, v_threshold, v_cooldown);
      if v_gate.circuit <> v_old then
        v_changed := true;
        perform menzil._log_circuit(v_gate, v_old);
      end if;
    end loop;
    perform menzil._store_circuit(v_gate);
    if v_changed then   -- lanes that the probe held ask again
      perform menzil._wake_lanes(array[v_channel], p_now);
    end if;
  end loop;
end $$;
