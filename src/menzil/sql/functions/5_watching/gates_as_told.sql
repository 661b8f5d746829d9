-- The gates of endpoints with the news that no dequeue has folded yet. Reads only: a monitor must not wait for a consumer,
-- and must not see a circuit later than the settle that opened it.
create or replace function menzil._gates_as_told(p_channel_id integer default null) returns setof menzil.gate
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_told record;
  v_gate menzil.gate;
  v_line menzil.line;
  v_settings menzil.setting_value;
  v_heard integer[] := '{}';
begin
  select s.* into v_settings from menzil.setting_value s;
  for v_told in
    select n.channel_id, array_agg(row(n.*)::menzil.line order by n.due_at, n.news = 1) as lines
      from (select n.* from menzil.line n where n.news is not null union all select a.* from menzil.aside a where a.news is not null) n
     where p_channel_id is null or n.channel_id = p_channel_id group by n.channel_id
  loop
    select g.* into v_gate from menzil.gate g where g.channel_id = v_told.channel_id;
    continue when not found;
    foreach v_line in array v_told.lines loop
      v_gate := menzil._hear_news(v_gate, v_line, v_settings.circuit_breaker_threshold, v_settings.circuit_breaker_cooldown);
    end loop;
    v_heard := v_heard || v_told.channel_id;
    return next v_gate;
  end loop;
  return query
    select g.* from menzil.channel c join menzil.gate g on g.channel_id = c.id
     where c.protocol is not null and c.dropped_at is null and (p_channel_id is null or c.id = p_channel_id)
       and g.channel_id not in (select h.id from unnest(v_heard) h(id));
end $$;
