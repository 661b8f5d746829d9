-- Leases what these locked lanes of one priority may give, looks at one place more for the new head, and moves their
-- marks. The scan starts at the head of the visiting transaction before the last one: docs/decisions/0003-fold.md says
-- why that is enough. Ids come back in turns: the first of each lane, the second of each lane, and so on; among them may be some
-- that were not leased because they expired, or because somebody withdrew them in this very moment.
create or replace function menzil._visit_lanes(
  p_rank smallint, p_lanes tid[], p_channels integer[], p_low_dues timestamptz[], p_low_ids bigint[], p_rooms integer[],
  p_epochs integer[], p_lock_ms bigint, p_worker text,
  out at timestamptz, out ids bigint[], out leased integer, out expired bigint[]
)
language plpgsql as $$
#variable_conflict use_column
begin
  -- The clock is read after the snapshot: nothing this visit can see ended later than it says.
  with clock as materialized (
    select clock_timestamp() as at
  ), found as materialized (
    select u.turn, u.room, r.at, r.due_at, r.id, r.n
      from unnest(p_channels, p_low_dues, p_low_ids, p_rooms) with ordinality u(channel_id, low_due, low_id, room, turn)
      cross join lateral (
        select r.ctid as at, r.due_at, r.id, row_number() over (order by r.due_at, r.id) as n
          from menzil.ready r
         where r.channel_id = u.channel_id and r.rank = p_rank and (r.due_at, r.id) >= (u.low_due, u.low_id)
         order by r.due_at, r.id limit u.room + 1) r
  ), gone as materialized (
    delete from menzil.ready r where r.ctid = any (array(select f.at from found f where f.n <= f.room))
    returning r.id, r.channel_id, r.attempts, r.ordering_key, (r.expires_at <= (select c.at from clock c)) is true as late
  ), into_lease as (
    insert into menzil.lease (id, channel_id, attempt, leased_at, unlock_at, epoch, ordering_key, worker)
      select g.id, g.channel_id, g.attempts + 1, c.at, c.at + p_lock_ms * interval '1 ms',
             case when p_epochs is not null then p_epochs[array_position(p_channels, g.channel_id)] end, g.ordering_key, p_worker
        from clock c, gone g where not g.late
  ), moved as (
    update menzil.lane l set
        low_due = case when l.visited_by = pg_current_xact_id() then l.low_due when (h.due_at, h.id) < (l.head_due, l.head_id) then h.due_at else l.head_due end,
        low_id = case when l.visited_by = pg_current_xact_id() then l.low_id when (h.due_at, h.id) < (l.head_due, l.head_id) then h.id else l.head_id end,
        head_due = coalesce(h.due_at, l.head_due),
        head_id = coalesce(h.id, l.head_id),
        visited_by = pg_current_xact_id(),
        phase = case when h.more or l.early_id <> '{}' then 1 when h.id is not null or l.phase = 1 or l.visited_by = pg_current_xact_id() then 2 else 0 end,
        next_at = case when h.more or l.early_id <> '{}' then c.at
                       when h.id is not null or l.phase = 1 or l.visited_by = pg_current_xact_id() then c.at + interval '3 ms' end
      from clock c cross join unnest(p_lanes) with ordinality u(at, turn)
      left join (select distinct on (f.turn) f.turn, f.due_at, f.id, f.n > f.room as more from found f order by f.turn, f.n desc) h on h.turn = u.turn
     where l.ctid = u.at
  )
  select array_agg(f.id order by f.n, f.turn), (select count(*) from gone g where not g.late), (select array_agg(g.id) from gone g where g.late),
         (select c.at from clock c)
    into ids, leased, expired, at
    from found f where f.n <= f.room;
end $$;
