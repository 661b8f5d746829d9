-- Messages with ids above p_after, p_limit of them, and messages in p_gaps that were committed meanwhile, at most p_limit of those: which
-- have a correlation id, and which have a parent. upto: all messages up to this id are looked at, but for gaps. cut: there may be more in
-- p_gaps. Most messages have neither: they are counted, and nothing is built from them.
-- STABLE: all queries see what the caller's statement sees.
create or replace function menzil._new_lookups(
  p_after bigint, p_last bigint, p_gaps int8multirange, p_limit integer,
  out ids bigint[], out correlation_ids uuid[], out child_ids bigint[], out parent_ids bigint[], out upto bigint, out gaps int8multirange, out cut boolean
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
  v_seen record;
  v_late record;
begin
  select count(*) as n, max(q.id) as last_id, count(q.correlation_id) as correlated, count(coalesce(q.redrive_of, q.replay_of)) as children into v_seen
    from (select m.id, m.correlation_id, m.redrive_of, m.replay_of from menzil.message m where m.id > p_after and m.id <= p_last order by m.id limit p_limit) q;
  upto := case when v_seen.n < p_limit then p_last else v_seen.last_id end;
  gaps := '{}';
  cut := false;
  if v_seen.correlated > 0 then
    select array_agg(m.id), array_agg(m.correlation_id) into ids, correlation_ids
      from menzil.message m where m.id > p_after and m.id <= upto and m.correlation_id is not null;
  end if;
  if v_seen.children > 0 then
    select array_agg(m.id), array_agg(p.id) into child_ids, parent_ids
      from menzil.message m cross join lateral unnest(array[m.redrive_of, m.replay_of]) p(id)
     where m.id > p_after and m.id <= upto and p.id is not null;
  end if;
  if v_seen.n < upto - p_after then
    gaps := int8multirange(int8range(p_after, upto, '(]')) - coalesce((
      select range_agg(q.run)
        from (select int8range(min(q.id), max(q.id), '[]') as run
                from (select m.id, row_number() over (order by m.id) as place from menzil.message m where m.id > p_after and m.id <= upto) q
               group by q.id - q.place) q), '{}');
  end if;
  if p_gaps <> '{}' then
    with late as materialized (
      select m.id, m.correlation_id, m.redrive_of, m.replay_of
        from unnest(p_gaps) g(gap)
        cross join lateral (select m.id, m.correlation_id, m.redrive_of, m.replay_of from menzil.message m where m.id >= lower(g.gap) and m.id < upper(g.gap) offset 0) m
       limit p_limit
    ), child as (
      select l.id, p.id as parent_id from late l cross join lateral unnest(array[l.redrive_of, l.replay_of]) p(id) where p.id is not null
    )
    select (select range_agg(int8range(l.id, l.id, '[]')) from late l) as found, (select count(*) = p_limit from late) as cut,
           (select array_agg(l.id) from late l where l.correlation_id is not null) as ids,
           (select array_agg(l.correlation_id) from late l where l.correlation_id is not null) as correlation_ids,
           (select array_agg(c.id) from child c) as child_ids, (select array_agg(c.parent_id) from child c) as parent_ids
      into v_late;
    ids := ids || v_late.ids;
    correlation_ids := correlation_ids || v_late.correlation_ids;
    child_ids := child_ids || v_late.child_ids;
    parent_ids := parent_ids || v_late.parent_ids;
    gaps := gaps + (p_gaps - coalesce(v_late.found, '{}'));
    cut := v_late.cut;
  end if;
end $$;
