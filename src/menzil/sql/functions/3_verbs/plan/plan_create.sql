-- Makes a draft: checks the filter, counts, and notes who wants it. Nothing is moved before plan_run. p_key names the form it came
-- from: the same call with the same key returns the same plan.
create or replace function menzil.plan_create(
  p_kind text, p_filter jsonb, p_rate double precision default null, p_note text default null, p_key text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set timezone = 'UTC' set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_filter jsonb := menzil._check_plan(p_kind, p_filter);
  v_top bigint;
  v_count record;
  v_id bigint;
begin
  perform menzil._check_key(p_key, 'key of a form');
  if not (p_rate > 0 and p_rate <= 1000000) then   -- NaN is greater than everything
    perform menzil._refuse_value('A rate must be more than 0 and at most 1000000 messages per second.', 'Leave the rate out to go as fast as there is room.');
  elsif p_rate is not null and p_kind = 'cancel' then
    perform menzil._refuse_value('A cancel has no rate.', 'Leave the rate out: nothing is delivered, so nothing has to be spared.');
  elsif length(p_note) > 1000 then
    perform menzil._refuse_value(format('A note has at most 1000 characters, this one has %s.', length(p_note)), 'Write a shorter one.');
  end if;
  v_id := menzil._plan_of_form(p_key, p_kind, v_filter, p_rate);
  if v_id is not null then
    return v_id;
  end if;
  v_top := case when p_kind = 'redrive' then coalesce((select max(d.id) from menzil.dead_letter d), 0) else menzil._register('menzil.message_id') end;
  select c.* into v_count from menzil._count_plan(p_kind, v_filter, v_top, v_now) c;
  if v_count.total > p_rate * 315360000 then
    perform menzil._refuse_value(format('At that rate %s messages would take more than ten years.', v_count.total), 'Give a higher rate, or a narrower filter.');
  end if;
  -- Waits for an open transaction that made the plan of the same form.
  insert into menzil.plan (kind, filter, rate, note, form_key, actor, via, counted, counted_exactly, created_at, top_id)
    values (p_kind, v_filter, p_rate, p_note, p_key, menzil._actor(), menzil._via(), v_count.total, v_count.exact, v_now, v_top)
    on conflict (form_key) do nothing returning id into v_id;
  if v_id is null then
    return menzil._plan_of_form(p_key, p_kind, v_filter, p_rate);
  end if;
  -- Skipped from the beginning: ids that name nothing the plan could do.
  insert into menzil.plan_progress (plan_id, skipped) values (v_id, case when v_filter ? 'ids' then jsonb_array_length(v_filter -> 'ids') - v_count.total else 0 end);
  insert into menzil.plan_channel (plan_id, channel_id, counted, cursor_id, end_id)
    select v_id, u.channel_id, u.n, coalesce(u.low - 1, 0), u.high from unnest(v_count.channels, v_count.counts, v_count.lows, v_count.highs) u(channel_id, n, low, high);
  perform menzil._event('plan.created', 'plan', v_id::text, null,
    jsonb_strip_nulls(jsonb_build_object('kind', p_kind, 'filter', v_filter, 'rate', p_rate, 'counted', v_count.total, 'counted_exactly', v_count.exact, 'note', p_note)));
  return v_id;
end $$;

-- The plan that was made from this form; a refusal if the form said something else then.
create or replace function menzil._plan_of_form(p_key text, p_kind text, p_filter jsonb, p_rate double precision) returns bigint
language plpgsql as $$
declare
  v_plan menzil.plan;
begin
  select p.* into v_plan from menzil.plan p where p.form_key = p_key;
  if v_plan.id is not null and (v_plan.kind, v_plan.filter) is distinct from (p_kind, p_filter) or v_plan.rate is distinct from p_rate and v_plan.id is not null then
    raise exception using errcode = '23505', message = format('The key of the form was used before, for plan %s, which is another one.', v_plan.id),
      hint = 'Use a new key for a new plan.';
  end if;
  return v_plan.id;
end $$;
