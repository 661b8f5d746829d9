-- A visit while somebody may be withdrawing messages in an open transaction. Rows it holds are passed over, not waited
-- for; as it may be undone, their places are kept as early places, to be looked at again.
create or replace function menzil._visit_carefully(
  p_rank smallint, p_lane tid, p_channel integer, p_low_due timestamptz, p_low_id bigint, p_room integer, p_epoch integer, p_lock_ms bigint,
  p_worker text, out at timestamptz, out ids bigint[], out leased integer, out expired bigint[]
)
language plpgsql as $$
#variable_conflict use_column
declare
  v_found record;
  v_held record;
  v_due timestamptz;
  v_id bigint;
  v_more boolean;
  v_many boolean;
begin
  select array_agg(q.place) as ats, array_agg(q.due_at) as dues, array_agg(q.id) as ids into v_found
    from (select r.ctid as place, r.due_at, r.id from menzil.ready r
           where r.channel_id = p_channel and r.rank = p_rank and (r.due_at, r.id) >= (p_low_due, p_low_id)
           order by r.due_at, r.id limit p_room + 1 for update skip locked) q;
  at := clock_timestamp();   -- after the snapshot: nothing found here ended later than it says
  v_due := v_found.dues[cardinality(v_found.ids)];
  v_id := v_found.ids[cardinality(v_found.ids)];
  v_more := cardinality(v_found.ids) > p_room;
  with gone as materialized (
    delete from menzil.ready r where r.ctid = any (v_found.ats[1 : p_room])
    returning r.id, r.attempts, r.ordering_key, (r.expires_at <= _visit_carefully.at) is true as late
  ), into_lease as (
    insert into menzil.lease (id, channel_id, attempt, leased_at, unlock_at, epoch, ordering_key, worker)
      select g.id, p_channel, g.attempts + 1, _visit_carefully.at, _visit_carefully.at + p_lock_ms * interval '1 ms', p_epoch, g.ordering_key,
             p_worker
        from gone g where not g.late
  )
  select count(*) filter (where not g.late), array_agg(g.id) filter (where g.late) into leased, expired from gone g;
  -- What is still there below the new head is held by somebody. Too many to remember one by one: the scan stays where it was.
  select array_agg(h.due_at) as dues, array_agg(h.id) as ids into v_held
    from (select r.due_at, r.id from menzil.ready r
           where r.channel_id = p_channel and r.rank = p_rank and (r.due_at, r.id) >= (p_low_due, p_low_id)
             and (r.due_at, r.id) < (coalesce(v_due, 'infinity'), coalesce(v_id, 9223372036854775807))
           order by r.due_at, r.id limit 101) h;
  v_many := cardinality(v_held.ids) > 100;
  update menzil.lane l set
      low_due = case when v_many then p_low_due when l.visited_by = pg_current_xact_id() then l.low_due
                     when (v_due, v_id) < (l.head_due, l.head_id) then v_due else l.head_due end,
      low_id = case when v_many then p_low_id when l.visited_by = pg_current_xact_id() then l.low_id
                    when (v_due, v_id) < (l.head_due, l.head_id) then v_id else l.head_id end,
      head_due = case when v_many then p_low_due else coalesce(v_due, l.head_due) end,
      head_id = case when v_many then p_low_id else coalesce(v_id, l.head_id) end,
      visited_by = pg_current_xact_id(),
      early_due = e.dues,
      early_id = e.ids,
      phase = case when v_more or v_many or e.ids <> '{}' then 1 when v_id is not null or l.phase = 1 or l.visited_by = pg_current_xact_id() then 2 else 0 end,
      next_at = case when v_more then _visit_carefully.at when v_many or e.ids <> '{}' then _visit_carefully.at + interval '20 ms'
                     when v_id is not null or l.phase = 1 or l.visited_by = pg_current_xact_id() then _visit_carefully.at + interval '3 ms' end
    from (select coalesce(array_agg(q.due_at order by q.due_at, q.id), '{}') as dues, coalesce(array_agg(q.id order by q.due_at, q.id), '{}') as ids
            from (select u.due_at, u.id from menzil.lane o cross join unnest(o.early_due, o.early_id) u(due_at, id) where o.ctid = p_lane
                  union select u.due_at, u.id from unnest(v_held.dues, v_held.ids) u(due_at, id) where v_many is not true) q) e
   where l.ctid = p_lane;
  ids := nullif(v_found.ids[1 : p_room], '{}');
end $$;
