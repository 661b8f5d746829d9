-- Keeps what a worker measured until the job pulse adds it up. The row of the worker is locked: a repeat waits, and then counts nothing.
create or replace function menzil._keep_tally(p_worker text, p_instance text, p_tally jsonb, p_now timestamptz) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_number bigint;
begin
  begin
    v_number := (p_tally ->> 'number')::bigint;
  exception when invalid_text_representation or numeric_value_out_of_range then
    null;
  end;
  if v_number is null or jsonb_typeof(p_tally -> 'try_ms') is distinct from 'object'
     or p_tally @? 'strict $.try_ms.* ? (@.type() != "array" || @.size() != 12)'
     or p_tally @? 'strict $.try_ms.*[*] ? (@.type() != "number" || @ < 0 || @ > 1000000000)' then
    perform menzil._refuse_value('The tally of a worker has a number, and 12 counters for each channel.', 'Use {"number": 1, "try_ms": {"channel": [0, ...]}}.');
  end if;
  update menzil.worker w set tally_number = v_number where w.name = p_worker and w.instance = p_instance and w.tally_number < v_number;
  if found then
    insert into menzil.pulse_tally (at, channel_id, try_ms)
      select date_trunc('minute', p_now), c.id, array(select round(e.n::numeric)::integer from jsonb_array_elements_text(t.value) with ordinality e(n, i) order by e.i)
        from jsonb_each(p_tally -> 'try_ms') t(name, value)
        cross join lateral (select c.id from menzil.channel c where c.name = t.name order by c.dropped_at desc nulls first limit 1) c;
  end if;
end $$;
