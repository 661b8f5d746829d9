-- What a visit would take from a lane of which p_taken messages are taken already: up to p_room messages of up to p_runs runs. ids:
-- those it would lease, without cancelled and expired ones. more: the lane keeps its turn.
create or replace function menzil._visit_next(
  p_channel_id integer, p_rank smallint, p_told menzil.line[], p_taken integer, p_room integer, p_runs integer, p_now timestamptz,
  out ids bigint[], out taken integer, out more boolean
)
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select array_agg(q.id order by q.n) filter (where q.takes and w.id is null and (m.expires_at <= p_now) is not true), coalesce(count(*) filter (where q.takes), 0)::integer,
         coalesce(bool_or(not q.takes) or max(q.k) = 9 and p_runs = 9, false)
    from (select q.*, q.n <= p_taken + p_room and q.k <= p_runs as takes
            from (select x.id, x.n, dense_rank() over (order by x.run) as k
                    from menzil._lane_next(p_channel_id, p_rank, p_told, p_taken + p_room + 1) with ordinality x(id, run, n) where x.n > p_taken) q) q
    left join lateral (select w.id from menzil.withdrawn w where w.id = q.id offset 0) w on q.takes
    left join lateral (select m.expires_at from menzil.message m where m.id = q.id offset 0) m on q.takes
$$;
