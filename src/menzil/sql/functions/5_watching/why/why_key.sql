-- The message that a message waits for behind its ordering key: the one that holds the key, or the first that waits for it. Nothing
-- where the message itself is next of its key.
create or replace function menzil._why_key(p_message menzil.sent, p_now timestamptz) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_head bigint;
  v_dead menzil.dead_letter;
  v_lease menzil.lease;
  v_due timestamptz;
  v_error text;
  v_outcome text;
  v_others bigint;
  v_more text;
  v_erased boolean;
begin
  select k.id into v_head from menzil.key_queue k
   where k.channel_id = p_message.channel_id and k.ordering_key = p_message.ordering_key order by k.waits, k.id limit 1;
  if v_head is null or v_head = p_message.id then
    return;
  end if;
  v_others := (select count(*) from (select 1 from menzil.key_queue k
    where k.channel_id = p_message.channel_id and k.ordering_key = p_message.ordering_key and k.waits = 1 and k.id < p_message.id and k.id <> v_head limit 10001) k);
  v_more := case when v_others = 0 then '' when v_others > 10000 then ' More than 10000 others of the key are before it.'
                 else format(' %s of the key %s before it too.', v_others, case v_others when 1 then 'is' else 'are' end) end;
  select d.* into v_dead from menzil.dead_letter d where d.original_message_id = v_head and d.blocks_key;
  if found then
    v_erased := menzil._is_erased(v_head);
    return query select 'key_blocked_by_dead_letter', format('Dead letter %s (message %s%s) blocks its ordering key since %s, until it is %scancelled.%s',
      v_dead.id, v_head, case when v_erased then ', erased' end, menzil._time_text(v_dead.failed_at), case when v_erased then '' else 'redriven or ' end, v_more),
      v_dead.failed_at, null::timestamptz, v_head::text,
      case when v_erased then menzil._command('message cancel', v_head::text) else menzil._command('dlq redrive', v_dead.id::text) end;
    return;
  end if;
  select l.* into v_lease from menzil.lease l where l.lo_id <= v_head and l.hi_id >= v_head and (l.ids is null or v_head = any (l.ids)) order by l.lo_id desc limit 1;
  if found then
    return query select 'behind_key', format('Message %s of its ordering key is in flight%s until %s at the latest.%s', v_head, ' at ' || v_lease.worker,
      menzil._time_text(v_lease.unlock_at), v_more), v_lease.leased_at, v_lease.unlock_at, v_head::text, menzil._command('message why', v_head::text);
    return;
  end if;
  select s.due_at, r.last_error, t.outcome into v_due, v_error, v_outcome from menzil.scheduled s left join menzil.returned r on r.id = s.id
    left join lateral (select t.outcome from menzil.attempt t where t.message_id = r.id and t.attempt = r.attempts offset 0) t on true
   where s.due_at = menzil._due_of(v_head) and s.id = v_head and s.due_at > p_now;
  if found then
    return query select 'behind_key', case when v_outcome = 'deferred' then format('The consumer of message %s of its ordering key deferred it to %s.%s', v_head, menzil._time_text(v_due), v_more)
      else format('Message %s of its ordering key is tried again at %s%s.%s', v_head, menzil._time_text(v_due), ' after "' || menzil._told_cause(v_error) || '"', v_more) end,
      null::timestamptz, v_due, v_head::text, menzil._command('message retry-now', v_head::text);
    return;
  end if;
  return query select 'behind_key', format('Message %s of its ordering key goes first.%s', v_head, v_more), null::timestamptz, null::timestamptz,
    v_head::text, menzil._command('message why', v_head::text);
end $$;
