-- The first p_limit messages of a lane in the order they will be leased, once the lines p_told of this lane are folded as menzil._fold_lines
-- does it. run: the number of the run they will stand in, because a dequeue that visits several lanes looks at nine runs of each.
create or replace function menzil._lane_next(p_channel_id integer, p_rank smallint, p_told menzil.line[], p_limit integer) returns table (id bigint, run bigint)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_lane menzil.lane;
  v_out bigint[] := array(select u.id from unnest(p_told) t cross join lateral unnest(t.ids) u(id) where t.flags & 64 <> 0);   -- cancelled
  v_most integer := p_limit + cardinality(v_out);
  v_trims boolean;   -- a fold that changes more than the end of the lane cuts off what is leased already of its first run
begin
  select l.* into v_lane from menzil.lane l where l.channel_id = p_channel_id and l.rank = p_rank order by l.v desc limit 1;
  v_trims := v_lane.gone > 0 and (v_out <> '{}' or exists (select 1 from unnest(p_told) t where (t.due_at, t.first_id) <= (v_lane.tail_due, v_lane.tail_id)));
  return query
    with run as materialized (
      select r.*, row_number() over (order by r.due_at, r.first_id) as k
        from (select case when r.gone > 0 and v_trims and r.due_at <> r.last_due then menzil._position_of(r.ids[r.gone + 1]) else r.due_at end as due_at,
                     case when r.gone > 0 and v_trims then coalesce(r.ids[r.gone + 1], r.first_id + r.gone) else r.first_id end as first_id, r.first_id + r.gone as low_id, r.last_due, r.last_id, r.n - r.gone as n, r.ids[r.gone + 1 :] as ids
                from (select r.*, case when r.due_at = v_lane.head_due and r.first_id = v_lane.head_id then v_lane.gone else 0 end as gone
                        from menzil.run r
                       where v_lane.tail_due is not null and r.channel_id = p_channel_id and r.rank = p_rank and (r.due_at, r.first_id) >= (v_lane.head_due, v_lane.head_id)
                       order by r.due_at, r.first_id limit v_most) r) r
    ), told as materialized (   -- part 0: below the head; 1: between runs; 2: behind the end. cuts: the run that a line between cuts in two
      select t.*, (select r.k from run r where t.part = 1 and (r.due_at, r.first_id) < (t.due_at, t.first_id) and (r.last_due, r.last_id) > (t.due_at, t.first_id)
                      and not exists (select 1 from run s where s.k = r.k + 1 and (s.due_at, s.first_id) < (t.due_at, t.first_id))) as cuts
        from (select t.due_at, t.first_id, t.n, t.ids,
                     case when v_lane.tail_due is null or (t.due_at, t.first_id) > (v_lane.tail_due, v_lane.tail_id) then 2
                          when (t.due_at, coalesce(t.ids[t.n], t.first_id + t.n - 1)) < (v_lane.head_due, v_lane.head_id) then 0 else 1 end as part
                from unnest(p_told) t where t.flags & 64 = 0) t
    ), stands as (
      -- Messages in runs, by the run; those behind a line that cuts their run stand behind the line.
      select u.id, coalesce(c.due_at, r.due_at) as due_at, coalesce(c.first_id, r.first_id) as first_id, (c.first_id is not null)::integer as behind, u.n, r.k as source
        from run r
        cross join lateral unnest(case when r.ids is not null then r.ids[: v_most]
                                       else array(select generate_series(r.low_id, r.low_id + least(r.n, v_most) - 1)) end) with ordinality u(id, n)
        left join lateral (
          select t.due_at, t.first_id from told t
           where t.cuts = r.k and (t.due_at, t.first_id) < (case when r.due_at = r.last_due then r.due_at else menzil._position_of(u.id) end, u.id)
           order by t.due_at desc, t.first_id desc limit 1) c on true
      union all
      -- Messages in lines. A line between runs, or of more than 16 messages, becomes a run; others are put together, up to 256 messages.
      select u.id, t.due_at, case when t.part = 1 or t.n > 16 then t.first_id else u.id end, 0, u.n, t.source
        from (select t.*, case when t.part = 1 or t.n > 16 then - row_number() over (order by t.due_at, t.first_id)
                               else - 1000000 * (1 + t.part) - 1000 * t.bigs - t.sum / 256 end as source
                from (select t.*, sum((t.n > 16)::integer) over o as bigs, sum(case when t.n > 16 then 0 else t.n end) over o - 1 as sum
                        from told t window o as (partition by t.part order by t.due_at, t.first_id rows unbounded preceding)) t) t
        cross join lateral unnest(case when t.ids is not null then t.ids[: v_most]
                                       else array(select generate_series(t.first_id, t.first_id + least(t.n, v_most) - 1)) end) with ordinality u(id, n)
    )
    select s.id, sum(s.begins) over (order by s.due_at, s.first_id, s.behind, s.n rows unbounded preceding)
      from (select s.*, (s.source is distinct from lag(s.source) over (order by s.due_at, s.first_id, s.behind, s.n))::integer as begins
              from stands s where s.id <> all (v_out)) s
     order by s.due_at, s.first_id, s.behind, s.n limit p_limit;
end $$;
