-- The same as _visit_lanes for a single lane, the common case, with fewer steps.
create or replace function menzil._visit_lane(
  p_rank smallint, p_lane tid, p_channel integer, p_low_due timestamptz, p_low_id bigint, p_room integer, p_epoch integer, p_lock_ms bigint,
  p_worker text, out at timestamptz, out ids bigint[], out leased integer, out expired bigint[]
)
language plpgsql as $$
#variable_conflict use_column
declare
  v_due timestamptz;
  v_id bigint;
  v_more boolean;
begin
  -- The clock is read after the snapshot: nothing this visit can see ended later than it says.
  with clock as materialized (
    select clock_timestamp() as at
  ), found as materialized (
    select r.ctid as at, r.due_at, r.id from menzil.ready r
     where r.channel_id = p_channel and r.rank = p_rank and (r.due_at, r.id) >= (p_low_due, p_low_id)
     order by r.due_at, r.id limit p_room + 1
  ), gone as materialized (
    delete from menzil.ready r where r.ctid = any (array(select f.at from found f limit p_room))
    returning r.id, r.attempts, r.ordering_key, (r.expires_at <= (select c.at from clock c)) is true as late
  ), into_lease as (
    insert into menzil.lease (id, channel_id, attempt, leased_at, unlock_at, epoch, ordering_key, worker)
      select g.id, p_channel, g.attempts + 1, c.at, c.at + p_lock_ms * interval '1 ms', p_epoch, g.ordering_key, p_worker
        from clock c, gone g where not g.late
  )
  select array_agg(f.id), max(f.due_at), (select count(*) from gone g where not g.late), (select array_agg(g.id) from gone g where g.late),
         (select c.at from clock c)
    into ids, v_due, leased, expired, at from found f;
  v_more := cardinality(ids) > p_room;
  v_id := ids[cardinality(ids)];
  update menzil.lane l set
      low_due = case when l.visited_by = pg_current_xact_id() then l.low_due when (v_due, v_id) < (l.head_due, l.head_id) then v_due else l.head_due end,
      low_id = case when l.visited_by = pg_current_xact_id() then l.low_id when (v_due, v_id) < (l.head_due, l.head_id) then v_id else l.head_id end,
      head_due = coalesce(v_due, l.head_due),
      head_id = coalesce(v_id, l.head_id),
      visited_by = pg_current_xact_id(),
      phase = case when v_more or l.early_id <> '{}' then 1 when v_id is not null or l.phase = 1 or l.visited_by = pg_current_xact_id() then 2 else 0 end,
      next_at = case when v_more or l.early_id <> '{}' then _visit_lane.at
                     when v_id is not null or l.phase = 1 or l.visited_by = pg_current_xact_id() then _visit_lane.at + interval '3 ms' end
   where l.ctid = p_lane;
  if v_more then
    ids := nullif(ids[1 : p_room], '{}');
  end if;
end $$;
