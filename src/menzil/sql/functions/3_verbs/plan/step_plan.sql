-- One step of a running plan, whose progress the caller has locked: up to p_limit messages, and no more than p_ahead's worth of them is
-- scheduled ahead. The cursor and the new messages commit together, so a step that dies has done nothing. Returns how many messages
-- it made or cancelled, and whether there is more to do at once.
create or replace function menzil._step_plan(p_plan menzil.plan, p_limit integer, p_ahead interval, out made integer, out more boolean)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_from timestamptz := greatest((select g.last_due_at from menzil.plan_progress g where g.plan_id = p_plan.id), v_now);
  v_pace integer := p_limit;      -- so many the rate allows
  v_room integer;                 -- so many the queue has room for
  v_waits text;
  v_chosen record;
  v_dues timestamptz[];
begin
  if p_plan.kind = 'cancel' then
    select c.made, c.more into made, more from menzil._step_cancel(p_plan, p_limit) c;
    return;
  end if;
  if p_plan.rate is not null then
    -- Slower than one message in p_ahead: one at a time.
    v_pace := least(p_limit, greatest(floor(extract(epoch from v_now + p_ahead - v_from) * p_plan.rate), (v_from = v_now)::integer));
  end if;
  select r.room, r.sentence into v_room, v_waits from menzil._plan_room(null, v_pace) r;
  select c.* into v_chosen from menzil._choose_for_plan(p_plan, v_room, v_now) c;
  made := cardinality(v_chosen.ids);
  if made > 0 then
    if p_plan.rate is not null then
      -- In steps of 20 ms: messages that are due together are one line of the log.
      v_dues := array(select v_from + ceil(n.n / p_plan.rate * 50) * interval '20 ms' from generate_series(1, made) n(n));
    end if;
    perform menzil._note_part(p_plan.id, case when p_plan.kind = 'redrive' then menzil._redrive(v_chosen.ids, v_dues)
                                              else menzil._replay_these(v_chosen.ids, v_chosen.created_ats, v_dues) end, v_dues, v_now);
  end if;
  more := v_chosen.more and v_waits is null and (made < v_pace or v_pace = p_limit);
  perform menzil._note_step(p_plan, made, v_chosen.skipped, case when made > 0 then coalesce(v_dues[made], v_now) end, coalesce(v_waits, v_chosen.waits), v_now);
end $$;

-- The new messages of one step carry the id of their plan: by 4096 ids, so that the plan of a message is found among its neighbours.
create or replace function menzil._note_part(p_plan_id bigint, p_ids bigint[], p_dues timestamptz[], p_now timestamptz) returns void
language plpgsql as $$
begin
  insert into menzil.plan_part (plan_id, lo_id, hi_id, n, ids, due_at, check_at)
    select p_plan_id, min(u.id), max(u.id), count(*), case when max(u.id) - min(u.id) <> count(*) - 1 then array_agg(u.id order by u.id) end,
           coalesce(min(u.due_at), p_now), coalesce(max(u.due_at), p_now) + interval '5 s'
      from unnest(p_ids, p_dues) u(id, due_at) group by u.id >> 12;
end $$;
