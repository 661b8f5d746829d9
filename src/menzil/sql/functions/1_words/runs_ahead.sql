-- The first runs of a lane. plain: the run is due since due_at. ids: the first twenty.
-- PostgreSQL puts this query into the caller's, so ids cost nothing where they are not read.
create or replace function menzil._runs_ahead(p_lane menzil.lane, p_most integer)
returns table (n integer, gone integer, due_at timestamptz, plain boolean, ids bigint[])
language sql stable as $$
  select r.n, r.gone, r.due_at, r.plain,
         case when r.ids is null then array(select generate_series(r.first_id + r.gone, least(r.first_id + r.n, r.first_id + r.gone + 20) - 1))
              else r.ids[r.gone + 1 : r.gone + 20] end
    from (select r.*, r.flags & 1 = 0 and (r.gone = 0 or r.due_at = r.last_due) as plain
            from (select r.n, r.due_at, r.last_due, r.first_id, r.flags, r.ids,
                         case when r.due_at = p_lane.head_due and r.first_id = p_lane.head_id then p_lane.gone else 0 end as gone
                    from menzil.run r
                   where r.channel_id = p_lane.channel_id and r.rank = p_lane.rank and (r.due_at, r.first_id) >= (p_lane.head_due, p_lane.head_id)
                   order by r.due_at, r.first_id limit p_most) r) r
$$;
