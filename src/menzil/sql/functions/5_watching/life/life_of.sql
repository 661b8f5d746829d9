-- What happened to one message, in rows of menzil.message_life: sent, its tries (the newest p_tries), where it is now, its end, its
-- dead letter. No payload, and of an error only what menzil._told_cause tells.
create or replace function menzil._life_of(p_id bigint, p_tries integer) returns table (
  at timestamptz, what text, message_id bigint, attempt bigint, worker text, duration_ms double precision, sentence text, detail jsonb
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_message record;
  v_done menzil.done := menzil._end_of(p_id);
begin
  select m.created_at, m.scheduled_at, m.expires_at, m.priority, m.correlation_id, m.redrive_of, m.replay_of, m.channel_id, c.name as channel into v_message
    from (select m.* from menzil.message m where m.id = p_id limit 1) m join menzil.channel c on c.id = m.channel_id;
  if not found then
    return;
  end if;
  return query
    select v_message.created_at, 'sent', p_id, null::bigint, null::text, null::double precision,
           format('Sent to %s%s%s%s%s%s.', quote_literal(v_message.channel), case when v_message.priority > 0 then format(' with priority %s', v_message.priority) end,
                  case when s.name is not null then format(' by schedule %s, for %s', quote_literal(s.name), menzil._time_text(s.slot_at)) end,
                  ' by bulk send ' || quote_literal(b.send_id), ' as a redrive of message ' || v_message.redrive_of, ' as a replay of message ' || v_message.replay_of),
           jsonb_strip_nulls(jsonb_build_object('channel', v_message.channel, 'priority', v_message.priority, 'scheduled_at', v_message.scheduled_at,
             'expires_at', v_message.expires_at, 'correlation_id', v_message.correlation_id, 'redrive_of', v_message.redrive_of, 'replay_of', v_message.replay_of,
             'schedule', s.name, 'slot_at', s.slot_at, 'send_id', b.send_id))
      from (select 1) one
      left join lateral (select c.name, l.slot_at from menzil.schedule_slot l join menzil.schedule c on c.id = l.schedule_id where l.message_id = p_id limit 1) s on true
      left join lateral (select menzil._bulk_send_of(p_id, v_message.created_at) as send_id) b on true
    union all
    select t.leased_at, 'try_' || t.outcome, p_id, t.attempt, t.worker, q.ms,
           format('Try %s %s%s%s.', t.attempt, case t.outcome when 'recovered' then 'was lost: its lease ran out' when 'deferred' then 'was deferred' else 'failed' end,
                  ' at ' || t.worker, case when t.outcome = 'failed' then ': ' || menzil._told_cause(t.error) end),
           jsonb_strip_nulls(jsonb_build_object('outcome', t.outcome, 'ended_at', t.ended_at, 'cause', menzil._told_cause(t.error), 'status_code', q.code))
      from (select t.* from menzil.attempt t where t.message_id = p_id order by t.attempt desc limit p_tries) t
      cross join lateral (select * from menzil._answered(t.response, t.leased_at, t.ended_at)) q
    union all
    select v_done.leased_at, 'try_completed', p_id, v_done.attempt, v_done.worker, q.ms, format('Try %s completed%s.', v_done.attempt, ' at ' || v_done.worker),
           jsonb_strip_nulls(jsonb_build_object('outcome', 'completed', 'ended_at', v_done.ended_at, 'status_code', q.code))
      from menzil._answered(v_done.responses[coalesce(array_position(v_done.ids, p_id), (p_id - v_done.lo_id + 1)::integer)], v_done.leased_at, v_done.ended_at) q
     where v_done.status = 'completed' and v_done.leased_at is not null
    union all
    select l.leased_at, 'in_flight', p_id, l.attempt, l.worker, null, format('Try %s is in flight%s; the lease ends at %s.', l.attempt, ' at ' || l.worker, menzil._time_text(l.unlock_at)),
           jsonb_build_object('unlock_at', l.unlock_at)
      from menzil.lease l where v_done.lo_id is null and l.lo_id <= p_id and l.hi_id >= p_id and (l.ids is null or p_id = any (l.ids))
    union all
    select v_done.ended_at, v_done.status, p_id, v_done.attempt, v_done.worker, extract(epoch from v_done.ended_at - v_message.created_at)::double precision * 1000,
           case v_done.status when 'completed' then 'Completed.' when 'failed' then 'Failed for good.' when 'expired' then 'Expired.' else 'Cancelled.' end, '{}'
     where v_done.lo_id is not null
    union all
    select d.failed_at, 'dead_letter', p_id, d.num_attempts, null, null,
           format('Became dead letter %s%s.', d.id, case when d.blocks_key then ', which blocks its ordering key' when d.redriven_id is not null then format(', redriven as message %s', d.redriven_id) end),
           jsonb_strip_nulls(jsonb_build_object('dlq_id', d.id, 'status', d.status, 'redriven_id', d.redriven_id, 'redriven_at', d.redriven_at, 'blocks_key', d.blocks_key,
             'cause', menzil._told_cause(d.last_error)))
      from menzil.dead_letter d where d.original_message_id = p_id
    union all
    select s.due_at, 'due', p_id, null, null, null, 'Due.', '{}' from menzil.scheduled s where v_done.lo_id is null and s.due_at = menzil._due_of(p_id) and s.id = p_id
    union all
    select v_message.expires_at, 'expires', p_id, null, null, null, 'Expires if it was not leased before.', '{}' where v_done.lo_id is null and v_message.expires_at is not null;
end $$;
