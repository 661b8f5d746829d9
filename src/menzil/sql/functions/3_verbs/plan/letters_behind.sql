-- Up to p_limit dead letters of one channel of a redrive behind its cursor, in the order of the plan: by id; of one cause, by the time
-- their messages were created at, as the index of causes has them. fits: the filter means this one.
create or replace function menzil._letters_behind(p_plan menzil.plan, p_target menzil.plan_channel, p_limit integer)
returns table (n bigint, id bigint, status text, redriven_at timestamptz, place_at timestamptz, place_id bigint, fits boolean)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  v_since timestamptz := coalesce((p_plan.filter ->> 'since')::timestamptz, '-infinity');
  v_until timestamptz := coalesce((p_plan.filter ->> 'until')::timestamptz, 'infinity');
begin
  if p_plan.filter ? 'ids' then
    return query
      select row_number() over (order by d.id), d.id, d.status, d.redriven_at, null::timestamptz, d.id, true
        from (select d.* from jsonb_array_elements_text(p_plan.filter -> 'ids') u(id)
                cross join lateral (select d.* from menzil.dead_letter d where d.id = u.id::bigint and d.channel_id = p_target.channel_id offset 0) d
               where u.id::bigint > p_target.cursor_id order by d.id limit p_limit) d;
  elsif p_plan.filter ? 'cause_hash' then
    return query
      select row_number() over (order by d.created_at, d.original_message_id), d.id, d.status, d.redriven_at, d.created_at, d.original_message_id,
             d.id <= p_plan.top_id and d.failed_at >= v_since and d.failed_at < v_until
        from (select d.* from menzil.dead_letter d
               where d.channel_id = p_target.channel_id and d.cause_hash = p_plan.filter ->> 'cause_hash' and d.status = 'failed'
                 and (d.created_at, d.original_message_id) > (coalesce(p_target.cursor_at, '-infinity'), p_target.cursor_id)
               order by d.created_at, d.original_message_id limit p_limit) d;
  else
    return query
      select row_number() over (order by d.id), d.id, d.status, d.redriven_at, null::timestamptz, d.id, d.failed_at >= v_since and d.failed_at < v_until
        from (select d.* from menzil.dead_letter d
               where d.channel_id = p_target.channel_id and d.id > p_target.cursor_id and d.id <= p_plan.top_id order by d.id limit p_limit) d;
  end if;
end $$;
