-- Sends these ended messages once more, in this order, each for its due time; NULL: at once. The times of creation find their months.
-- The caller has asked for room. Returns the ids of the new messages.
create or replace function menzil._replay_these(p_ids bigint[], p_created_ats timestamptz[], p_dues timestamptz[]) returns bigint[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_new bigint[] := array(select nextval('menzil.message_id') from generate_series(1, cardinality(p_ids)));
  v_sent menzil.sent[];
  v_ids bigint[];
  v_parents bigint[];
begin
  with sent as (
    insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, payload, content, ordering_key, correlation_id, headers, metadata, replay_of)
      select u.new_id, m.channel_id, m.priority, v_now, u.due_at, m.payload, m.content, m.ordering_key, m.correlation_id, m.headers, m.metadata, m.id
        from unnest(p_ids, p_created_ats, v_new, p_dues) u(id, created_at, new_id, due_at)
        cross join lateral (select m.* from menzil.message m where m.id = u.id and m.created_at = u.created_at offset 0) m
    returning message.id, message.channel_id, message.priority, message.scheduled_at, message.ordering_key, message.replay_of
  )
  select array_agg(row(s.id, s.channel_id, (10 - s.priority)::smallint, s.scheduled_at, null, s.ordering_key)::menzil.sent order by s.id),
         array_agg(s.id), array_agg(s.replay_of)
    into v_sent, v_ids, v_parents from sent s;
  perform menzil._note_parents(v_ids, v_parents);
  perform menzil._place_messages(v_sent, v_now);
  return v_new;
end $$;
