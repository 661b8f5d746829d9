-- The next failed dead letters of one channel of a redrive, locked. Looks at up to ten times p_limit letters behind the cursor. SKIP
-- LOCKED: letters that another transaction is redriving are left out, and so are erased ones and those that were redriven since the
-- count.
create or replace function menzil._plan_letters(p_plan menzil.plan, p_target menzil.plan_channel, p_limit integer, out target menzil.plan_channel, out ids bigint[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_seen record;
  v_found bigint[] := '{}';
  v_most integer;
begin
  target := p_target;
  for v_look in 1 .. 10 loop
    v_most := p_limit - cardinality(v_found);
    select coalesce(array_agg(w.id order by w.n) filter (where w.status = 'failed' and w.fits), '{}') as found, count(*) as n,
           (array_agg(w.place_at order by w.n desc))[1] as place_at, (array_agg(w.place_id order by w.n desc))[1] as place_id,
           count(*) filter (where w.status <> 'failed' and w.fits and w.redriven_at >= p_plan.created_at) as redriven into v_seen
      from menzil._letters_behind(p_plan, target, v_most) w;
    target.cursor_at := coalesce(v_seen.place_at, target.cursor_at);
    target.cursor_id := coalesce(v_seen.place_id, target.cursor_id);
    target.finished := v_seen.n < v_most;
    target.skipped := target.skipped + v_seen.redriven;
    v_found := v_found || v_seen.found;
    exit when target.finished or cardinality(v_found) >= p_limit;
  end loop;
  target.finished := target.finished or not exists (select 1 from menzil._letters_behind(p_plan, target, 1));
  -- Locked first, their messages looked at then: PostgreSQL 18 may crash where one query does both and meets a letter that changed meanwhile.
  ids := array(select d.id from unnest(v_found) with ordinality u(id, n)
                 cross join lateral (select d.id from menzil.dead_letter d where d.id = u.id and d.status = 'failed' for update skip locked offset 0) d
                order by u.n);
  ids := array(select u.id from unnest(ids) with ordinality u(id, n)
                 cross join lateral (select d.original_message_id, d.created_at from menzil.dead_letter d where d.id = u.id offset 0) d
                 cross join lateral (select 1 from menzil.message m where m.id = d.original_message_id and m.created_at = d.created_at
                                        and (m.payload is not null or m.content is not null) offset 0) m
                order by u.n);
  target.skipped := target.skipped + cardinality(v_found) - cardinality(ids);
  if target.finished and p_plan.filter ? 'cause_hash' and p_plan.counted_exactly then
    -- The index of causes has failed letters only: those that were redriven since the count are found by counting.
    target.skipped := greatest(target.skipped, target.counted - target.done - cardinality(ids));
  end if;
end $$;
