-- What a message waits for by itself: its time, its retry, or another message of its ordering key.
create or replace function menzil._why_waiting(
  p_message menzil.sent, p_channel menzil.channel, p_place text, p_due_at timestamptz, p_created_at timestamptz,
  p_now timestamptz
) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_now_command text := menzil._command('message retry-now', p_message.id::text);
  v_tried record;
begin
  if p_place is null then
    return query select 'no_place', 'It has no place in the queue, so no dequeue finds it.', null::timestamptz, null::timestamptz, null::text, 'psql "$MENZIL_DSN" -c ''select menzil.rebuild()''';
  elsif p_place = 'aside' then
    return query select 'held', format('A dequeue set it aside until %s: an open transaction may be cancelling it, or its expiry could not be noted.', menzil._time_text(p_due_at)),
      null::timestamptz, p_due_at, null::text, null::text;
  elsif p_place = 'scheduled' then
    select r.attempts, r.retry_count, r.last_error, t.outcome, t.ended_at into v_tried from menzil.returned r
      left join lateral (select t.outcome, t.ended_at from menzil.attempt t where t.message_id = r.id and t.attempt = r.attempts offset 0) t on true
     where r.id = p_message.id;
    if v_tried.attempts > 0 and coalesce(v_tried.outcome, 'failed') <> 'deferred' then
      return query select 'retrying', format('Retry %s of %s is due at %s%s.', v_tried.retry_count,
          coalesce((p_channel.retry_policy ->> 'max_retries')::integer, (select s.default_max_retries from menzil.setting_value s)), menzil._time_text(p_due_at),
          ' after "' || menzil._told_cause(v_tried.last_error) || '"'), v_tried.ended_at, p_due_at, null::text, v_now_command;
    else
      return query select 'scheduled', case when v_tried.outcome = 'deferred' then format('Its consumer deferred it to %s.', menzil._time_text(p_due_at))
          else format('It is scheduled for %s.', menzil._time_text(p_due_at)) end, coalesce(v_tried.ended_at, p_created_at), p_due_at, null::text, v_now_command;
    end if;
  elsif p_place = 'key' then
    return query select w.* from menzil._why_key(p_message, p_now) w;
  end if;
end $$;
