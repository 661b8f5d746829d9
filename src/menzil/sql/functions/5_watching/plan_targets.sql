-- Whom a plan reaches: its channels, the largest first, at most 1,000. waits_for says why nothing goes there now; room is how many
-- more messages its max_size lets in, null without one. first_ids are up to three that it begins with, and last_id is its last: of dead
-- letters for a redrive, of messages for a replay; null for a cancel, where a short look finds none, and behind the 20 largest channels:
-- a page asks every two seconds, and each look reads up to 2,000 rows.
create or replace function menzil.plan_targets(p_id bigint) returns table (
  channel text, is_endpoint boolean, counted bigint, done bigint, skipped bigint, finished boolean, waits_for text, room bigint, first_ids bigint[], last_id bigint
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set timezone = 'UTC' set jit = off as $$
#variable_conflict use_column
declare
  v_plan menzil.plan := menzil._known_plan(p_id);
begin
  return query
    select c.name, c.protocol is not null, t.counted, t.done, t.skipped, t.finished,
           case when v_plan.kind <> 'cancel' and not t.finished then (menzil._plan_waits(t.channel_id, t.probed_at, clock_timestamp())).sentence end,
           case when c.max_size is not null then greatest(0, c.max_size - (select coalesce(sum(s.change), 0) from menzil.size_change s where s.channel_id = c.id))::bigint end,
           n.first_ids, n.last_id
      from (select t as target, t.*, row_number() over (order by t.counted desc, t.channel_id) as place
              from menzil.plan_channel t where t.plan_id = p_id order by t.counted desc, t.channel_id limit 1000) t
      cross join lateral (select c.* from menzil.channel c where c.id = t.channel_id offset 0) c
      left join lateral menzil._plan_ends(v_plan, t.target) n on t.place <= 20
     order by t.counted desc, t.channel_id;
end $$;

-- The first three and the last of what one channel of a plan has still to do, among 1,000 at either end.
create or replace function menzil._plan_ends(p_plan menzil.plan, p_target menzil.plan_channel, out first_ids bigint[], out last_id bigint)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_since timestamptz := coalesce((p_plan.filter ->> 'since')::timestamptz, '-infinity');
  v_until timestamptz := coalesce((p_plan.filter ->> 'until')::timestamptz, 'infinity');
  v_ids bigint[];
begin
  if p_target.finished or p_plan.filter ? 'ids' then
    return;
  elsif p_plan.kind = 'redrive' then
    first_ids := nullif(array(select l.id from menzil._letters_behind(p_plan, p_target, 1000) l where l.status = 'failed' and l.fits order by l.n limit 3), '{}');
    last_id := (select d.id from (select d.* from menzil.dead_letter d where d.channel_id = p_target.channel_id and d.id <= p_plan.top_id order by d.id desc limit 1000) d
                 where d.status = 'failed' and d.failed_at >= v_since and d.failed_at < v_until and d.cause_hash is not distinct from coalesce(p_plan.filter ->> 'cause_hash', d.cause_hash)
                 order by d.id desc limit 1);
  elsif p_plan.kind = 'replay' then
    v_ids := array(select m.id from (select m.id, m.channel_id, m.created_at from menzil.message m
                                      where m.id > p_target.cursor_id and m.id <= p_target.end_id order by m.id limit 1000) m
                    where m.channel_id = p_target.channel_id and m.created_at >= v_since and m.created_at < least(v_until, p_plan.created_at));
    first_ids := nullif(array(select e.id from menzil._ends_among(v_ids) e where e.status = coalesce(p_plan.filter ->> 'status', e.status) order by e.id limit 3), '{}');
    v_ids := array(select m.id from (select m.id, m.channel_id, m.created_at from menzil.message m
                                      where m.id > p_target.cursor_id and m.id <= p_target.end_id order by m.id desc limit 1000) m
                    where m.channel_id = p_target.channel_id and m.created_at >= v_since and m.created_at < least(v_until, p_plan.created_at));
    last_id := (select max(e.id) from menzil._ends_among(v_ids) e where e.status = coalesce(p_plan.filter ->> 'status', e.status));
  end if;
end $$;
