-- Leases the early places of these locked lanes, each by its exact place, and says what is left of their rooms.
-- Early places lie below the scan start, so they go first. A place that an open withdrawal holds stays early.
-- The lanes may have moved: their new positions come back.
create or replace function menzil._visit_early(
  p_rank smallint, p_lanes tid[], p_channels integer[], p_rooms integer[], p_epochs integer[], p_lock_ms bigint, p_worker text,
  out at timestamptz, out ids bigint[], out leased integer, out expired bigint[], out lanes tid[], out rooms integer[]
)
language plpgsql as $$
#variable_conflict use_column
begin
  with clock as materialized (
    select clock_timestamp() as at
  ), lane as materialized (
    select u.at, u.turn, u.channel_id, u.room, l.early_due, l.early_id
      from unnest(p_lanes, p_channels, p_rooms) with ordinality u(at, channel_id, room, turn)
      cross join lateral (select l.early_due, l.early_id from menzil.lane l where l.ctid = u.at offset 0) l
  ), found as materialized (
    select i.turn, i.room, r.at, r.due_at, r.id, row_number() over (partition by i.turn order by r.due_at, r.id) as n
      from lane i
      cross join lateral unnest(i.early_due, i.early_id) e(due_at, id)
      cross join lateral (select r.ctid as at, r.due_at, r.id from menzil.ready r
                           where r.channel_id = i.channel_id and r.rank = p_rank and r.due_at = e.due_at and r.id = e.id for update skip locked offset 0) r
  ), gone as materialized (
    delete from menzil.ready r where r.ctid = any (array(select f.at from found f where f.n <= f.room))
    returning r.id, r.channel_id, r.attempts, r.ordering_key, (r.expires_at <= (select c.at from clock c)) is true as late
  ), into_lease as (
    insert into menzil.lease (id, channel_id, attempt, leased_at, unlock_at, epoch, ordering_key, worker)
      select g.id, g.channel_id, g.attempts + 1, c.at, c.at + p_lock_ms * interval '1 ms',
             case when p_epochs is not null then p_epochs[array_position(p_channels, g.channel_id)] end, g.ordering_key, p_worker
        from clock c, gone g where not g.late
  ), moved as (
    update menzil.lane l set early_due = coalesce(h.early_due, '{}'), early_id = coalesce(h.early_id, '{}')
      from lane i
      left join (select i.turn, array_agg(e.due_at order by e.due_at, e.id) as early_due, array_agg(e.id order by e.due_at, e.id) as early_id
                   from lane i cross join lateral unnest(i.early_due, i.early_id) e(due_at, id)
                  where e.id not in (select g.id from gone g)
                    and exists (select 1 from menzil.ready r where r.channel_id = i.channel_id and r.rank = p_rank and r.due_at = e.due_at and r.id = e.id)
                  group by i.turn) h on h.turn = i.turn
     where l.ctid = i.at and l.early_id <> '{}'
    returning i.turn, l.ctid as at
  )
  select array_agg(f.id order by f.n, f.turn), (select count(*) from gone g where not g.late), (select array_agg(g.id) from gone g where g.late),
         array(select coalesce(m.at, i.at) from lane i left join moved m on m.turn = i.turn order by i.turn),
         array(select i.room - (select count(*) from found g where g.turn = i.turn and g.n <= g.room)::integer from lane i order by i.turn),
         (select c.at from clock c)
    into ids, leased, expired, lanes, rooms, at
    from found f where f.n <= f.room;
end $$;
