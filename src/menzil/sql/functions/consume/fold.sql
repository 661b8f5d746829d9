-- Folds the arrival log into lanes and gates. Why it may forget what it forgets: docs/decisions/0003-fold.md.
-- An arrival that changes nothing is dropped without a lock. One that does needs the lane's lock, which nobody waits
-- for: what is locked by another consumer goes back into the log. p_full reads the whole log, not only its end.
create or replace function menzil._fold(p_now timestamptz, p_full boolean, p_limit integer default 300) returns integer
language plpgsql as $$
declare
  v_mark bigint := menzil._register('menzil.arrival_mark');
  v_new_mark bigint := 0;
  v_rows menzil.arrival[] := '{}';
  v_some menzil.arrival[];
  v_size bigint;
  v_block bigint;
begin
  for g in 0 .. 3 loop
    v_size := pg_relation_size((array['menzil.arrival_0'::regclass, 'menzil.arrival_1', 'menzil.arrival_2', 'menzil.arrival_3'])[g + 1]) / 8192;
    continue when v_size = 0;
    v_block := (v_mark >> (15 * g)) & 32767;
    -- Each sending session fills a page of its own: start a few pages early, and read a short log whole.
    v_some := menzil._read_arrivals(g, case when p_full or v_size <= 16 or v_block > v_size then 0 else greatest(0, v_block - 4) end, p_limit);
    v_rows := v_rows || v_some;
    -- Next time start where the log ended before this look, unless something was left behind.
    v_new_mark := v_new_mark | (least(case when cardinality(v_some) < p_limit then v_size else v_block end, 32767) << (15 * g));
  end loop;
  if v_new_mark <> v_mark then
    perform setval('menzil.arrival_mark', v_new_mark);
  end if;
  if v_rows <> '{}' then
    perform menzil._fold_rows(p_now, v_rows);
  end if;
  return cardinality(v_rows);
end $$;

-- Takes rows of one generation out of the log, from this block on, passing over those that another consumer takes.
create or replace function menzil._read_arrivals(p_generation integer, p_block bigint, p_limit integer) returns menzil.arrival[]
language plpgsql as $$
declare
  v_from tid := format('(%s,0)', p_block)::tid;
  v_at tid[];
  v_rows menzil.arrival[];
begin
  if p_generation = 0 then
    select array_agg(t.at), array_agg(t.line) into v_at, v_rows
      from (select a.ctid as at, a::menzil.arrival as line from menzil.arrival_0 a where a.ctid >= v_from limit p_limit for update skip locked) t;
    delete from menzil.arrival_0 a where a.ctid = any (v_at);
  elsif p_generation = 1 then
    select array_agg(t.at), array_agg(t.line) into v_at, v_rows
      from (select a.ctid as at, a::menzil.arrival as line from menzil.arrival_1 a where a.ctid >= v_from limit p_limit for update skip locked) t;
    delete from menzil.arrival_1 a where a.ctid = any (v_at);
  elsif p_generation = 2 then
    select array_agg(t.at), array_agg(t.line) into v_at, v_rows
      from (select a.ctid as at, a::menzil.arrival as line from menzil.arrival_2 a where a.ctid >= v_from limit p_limit for update skip locked) t;
    delete from menzil.arrival_2 a where a.ctid = any (v_at);
  elsif p_generation = 3 then
    select array_agg(t.at), array_agg(t.line) into v_at, v_rows
      from (select a.ctid as at, a::menzil.arrival as line from menzil.arrival_3 a where a.ctid >= v_from limit p_limit for update skip locked) t;
    delete from menzil.arrival_3 a where a.ctid = any (v_at);
  end if;
  return coalesce(v_rows, '{}');
end $$;
