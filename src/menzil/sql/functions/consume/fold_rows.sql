-- What these arrivals change: places in lanes, ordering keys that may need a head, slots of gates that came back.
create or replace function menzil._fold_rows(p_now timestamptz, p_rows menzil.arrival[]) returns void
language plpgsql as $$
declare
  v_me xid8 := pg_current_xact_id_if_assigned();
  v_place record;
  v_key record;
  v_slot record;
  v_head record;
  v_news record;
begin
  with place as (
    select t.channel_id, t.rank, t.due_at, t.id, coalesce(t.span, false) as span, t.xid = v_me as own from unnest(p_rows) t where t.id is not null
    union all
    select u.channel_id, u.rank, u.due_at, u.id, u.span, t.xid = v_me
      from unnest(p_rows) t cross join unnest(t.channel_ids, t.ranks, t.due_ats, t.ids, t.spans) u(channel_id, rank, due_at, id, span)
     where t.ids is not null
  )
  select array_agg(p.channel_id) as channels, array_agg(p.rank) as ranks, array_agg(p.due_at) as dues, array_agg(p.id) as ids, array_agg(p.span) as spans
    into v_place
    from place p
    left join lateral (select l.phase, l.head_due, l.head_id from menzil.lane l where l.channel_id = p.channel_id and l.rank = p.rank offset 0) l on true
   -- What this very transaction sent is invisible to others until it commits: for them it changes something.
   where p.own or l.phase is distinct from 1 or (p.due_at, p.id) < (l.head_due, l.head_id);

  select array_agg(k.channel_id) as channels, array_agg(k.ordering_key) as keys into v_key
    from (select distinct t.channel_id, t.ordering_key from unnest(p_rows) t where t.ordering_key is not null) k;
  if v_key.keys is not null then
    v_head := menzil._raise_heads(p_now, v_key.channels, v_key.keys);
    if v_head.ids is not null then
      v_place.channels := v_place.channels || v_head.channels;
      v_place.ranks := v_place.ranks || v_head.ranks;
      v_place.dues := v_place.dues || v_head.dues;
      v_place.ids := v_place.ids || v_head.ids;
      v_place.spans := v_place.spans || array_fill(false, array[cardinality(v_head.ids)]);
    end if;
  end if;
  if v_place.ids is not null then
    perform menzil._fold_lanes(p_now, v_place.channels, v_place.ranks, v_place.dues, v_place.ids, v_place.spans);
  end if;

  select array_agg(f.channel_id) as channels, array_agg(f.epoch) as epochs, array_agg(f.freed) as freed into v_slot
    from (select t.channel_id, t.epoch, sum(t.freed)::integer as freed from unnest(p_rows) t where t.freed is not null group by t.channel_id, t.epoch) f;
  if v_slot.freed is not null then
    perform menzil._fold_gates(p_now, v_slot.channels, v_slot.epochs, v_slot.freed);
  end if;

  for v_news in
    select t.channel_id, array_agg(t.due_at order by t.ordinality) as tolds, array_agg(t.news order by t.ordinality) as kinds, array_agg(t.news_count order by t.ordinality) as counts,
           array_agg(t.news_at order by t.ordinality) as ats, array_agg(t.wait_until order by t.ordinality) as waits
      from unnest(p_rows) with ordinality t where t.news is not null group by t.channel_id order by t.channel_id
  loop
    perform menzil._fold_news(p_now, v_news.channel_id, v_news.tolds, v_news.kinds, v_news.counts, v_news.ats, v_news.waits);
  end loop;
end $$;
