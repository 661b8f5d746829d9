-- Takes messages from the front of several locked lanes of one priority, in one statement: menzil._visit_lane takes them from one. It
-- looks at nine runs of each lane at most. The ids come back in turns: the first of each lane, the second of each lane, and so on.
create or replace function menzil._visit_lanes(p_turns menzil.turn[], p_rank smallint, p_rooms integer[], p_now timestamptz, out ids bigint[], out flags smallint)
language plpgsql as $$
#variable_conflict use_column
begin
  with found as materialized (
    select u.turn, u.at as lane, p_rooms[u.turn] as room, r.at, r.due_at, r.first_id, r.flags, r.ids, r.skip, r.n - r.skip as size, r.k,
           sum(r.n - r.skip) over (partition by u.turn order by r.k) - (r.n - r.skip) as before
      from unnest(p_turns) with ordinality u(at, channel_id, name, head_due, head_id, gone, gated, turn)
      left join lateral (
        select r.ctid as at, r.due_at, r.first_id, r.n, r.flags, r.ids, case when r.due_at = u.head_due and r.first_id = u.head_id then u.gone else 0 end as skip,
               row_number() over (order by r.due_at, r.first_id) as k
          from menzil.run r where r.channel_id = u.channel_id and r.rank = p_rank and (r.due_at, r.first_id) >= (u.head_due, u.head_id)
         order by r.due_at, r.first_id limit least(p_rooms[u.turn] + 1, 9)) r on true
  ), piece as materialized (
    select f.turn, f.k, f.flags, least(f.size, f.room - f.before)::integer as take, f.first_id, f.skip, f.ids from found f where f.before < f.room
  ), used as (
    delete from menzil.run r where r.ctid = any (array(select f.at from found f where f.before + f.size <= f.room))
  ), head as materialized (
    -- The first run that has messages left; without one, the end of the lane, or of the look.
    select distinct on (f.turn) f.lane, f.due_at, f.first_id, f.before + f.size > f.room or f.k = 9 as more,
           case when f.before >= f.room then f.skip when f.before + f.size > f.room then f.skip + f.room - f.before else 0 end::integer as gone
      from found f order by f.turn, (f.before + f.size > f.room) is true desc, case when f.before + f.size > f.room then f.k else - f.k end
  ), moved as (
    update menzil.lane l set head_due = coalesce(h.due_at, l.head_due), head_id = coalesce(h.first_id, l.head_id), gone = coalesce(h.gone, 0),
        next_at = case when h.more then p_now end, tail_due = case when h.more then l.tail_due end, tail_id = case when h.more then l.tail_id end, v = l.v + 1
      from head h where l.ctid = h.lane
  )
  select array_agg(w.id order by w.n, w.turn), bit_or(w.flags)
    into ids, flags
    from (select e.turn, e.flags, e.id, row_number() over (partition by e.turn order by e.k, e.o) as n
            from (select p.turn, p.k, p.flags, x.id, x.o from piece p
                    cross join lateral unnest(case when p.ids is not null then p.ids[p.skip + 1 : p.skip + p.take] when p.take = 1 then array[p.first_id + p.skip]
                        else array(select generate_series(p.first_id + p.skip, p.first_id + p.skip + p.take - 1)) end) with ordinality x(id, o)) e) w;
end $$;
