-- What these lines change. Their lanes and gates are locked. First the gates: slots that came back, news of endpoints, and
-- ordering keys that need a head; a head that is raised is one more message for its lane.
create or replace function menzil._fold_rows(p_now timestamptz, p_rows menzil.line[]) returns void
language plpgsql as $$
declare
  v_rows menzil.line[] := p_rows;
  v_gates menzil.line[];
  v_freed integer[];   -- channels whose slots came back
begin
  if exists (select 1 from unnest(p_rows) t where t.rank is null) then
    select array_agg(row(t.*)::menzil.line) filter (where t.rank is null), array_agg(row(t.*)::menzil.line) filter (where t.rank is not null)
      into v_gates, v_rows from unnest(p_rows) t;
    if v_gates is not null then
      v_freed := array(select distinct t.channel_id from unnest(v_gates) t where t.freed is not null);
      if v_freed <> '{}' then
        -- A slot of an older epoch was not counted by the gate as it is now.
        update menzil.gate g set in_flight = greatest(0, g.in_flight - s.freed)
          from (select t.channel_id, t.epoch, sum(t.freed)::integer as freed from unnest(v_gates) t where t.freed is not null group by t.channel_id, t.epoch) s
         where g.channel_id = s.channel_id and g.epoch = s.epoch and s.freed > 0;
        perform menzil._wake_lanes(v_freed, p_now);
      end if;
      perform menzil._fold_news(p_now, v_gates);
      v_rows := v_rows || menzil._raise_heads(v_gates);
    end if;
  end if;
  if v_rows is not null then
    perform menzil._fold_lines(p_now, v_rows);
  end if;
end $$;
