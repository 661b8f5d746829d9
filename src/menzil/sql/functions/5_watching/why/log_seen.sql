-- What the log says of a message and of those before it, in one pass over at most 10,000 lines that no dequeue has folded yet.
--   here       the message stands in a line                  before     messages of its lane in lines before it
--   higher     of a higher priority in its channel           elsewhere  of a higher priority in other channels whose gate is not shut
--   full       there are more lines than were read
create or replace function menzil._log_seen(
  p_message menzil.sent, p_place_at timestamptz, out here boolean, out before bigint, out higher bigint, out elsewhere bigint, out "full" boolean
)
language sql stable set enable_seqscan = off set jit = off as $$
  with ahead as materialized (
    select n.*, coalesce(n.channel_id = p_message.channel_id and n.rank = p_message.rank, false) as mine from menzil._lines_ahead(10000) n where n.flags & 64 = 0
  )
  select coalesce(bool_or(n.mine and case when n.ids is null then p_message.id between n.first_id and n.first_id + n.n - 1 else p_message.id = any (n.ids) end), false),
         coalesce(sum(case when not n.mine then 0 when n.due_at < p_place_at then n.n when n.due_at > p_place_at or n.first_id > p_message.id then 0
                           when n.ids is null then least(n.n, p_message.id - n.first_id)
                           else (select count(*) from unnest(n.ids) u(id) where u.id < p_message.id) end), 0)::bigint,
         coalesce(sum(n.n) filter (where n.channel_id = p_message.channel_id and n.rank < p_message.rank), 0)::bigint,
         coalesce((select sum(q.n)
                     from (select a.channel_id, sum(a.n) as n from ahead a where a.channel_id <> p_message.channel_id and a.rank < p_message.rank group by 1) q
                    where not exists (select 1 from menzil.gate g where g.channel_id = q.channel_id and (g.paused or g.circuit <> 0 or g.wait_until > clock_timestamp()))), 0)::bigint,
         count(*) >= 10000
    from ahead n
$$;
