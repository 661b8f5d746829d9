-- What happened to a message, to the messages it was sent again for, to the messages that were sent again because of it, and to its
-- channel meanwhile: rows by time. Of the newest 1,000 events of the channel, the last 50 in its life. No payload. Reads only.
create or replace function menzil.message_life(p_id bigint) returns table (
  at timestamptz, what text, message_id bigint, attempt bigint, worker text, duration_ms double precision, sentence text, detail jsonb
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_order constant text[] := '{sent,try_failed,try_deferred,try_recovered,try_completed,in_flight,completed,failed,expired,cancelled,dead_letter}';
  v_channel text;
  v_from timestamptz;
  v_to timestamptz := coalesce((menzil._end_of(p_id)).ended_at, 'infinity');
begin
  perform menzil._check_known(p_id);
  select c.name, m.created_at into v_channel, v_from from (select m.channel_id, m.created_at from menzil.message m where m.id = p_id limit 1) m join menzil.channel c on c.id = m.channel_id;
  return query
    select q.at, q.what, q.message_id, q.attempt, q.worker, q.duration_ms, q.sentence, q.detail
      from (select l.* from menzil.message_family(p_id) f cross join lateral menzil._life_of(f.message_id, case f.depth when 0 then 1000 else 20 end) l
            union all
            select e.created_at, case e.event_type when 'redrive' then 'redriven' when 'replay' then 'replayed' else split_part(e.event_type, '.', 2) end, p_id, null, null, null,
                   case e.event_type when 'redrive' then 'Redriven as message ' || (e.metadata ->> 'redriven_id') when 'replay' then 'Replayed as message ' || (e.metadata ->> 'replay_id')
                     when 'message.hurried' then 'Made due at once' when 'message.erased' then 'Its content was erased' when 'message.stuck' then 'The queue could not move it'
                     when 'redrive.taken_back' then 'Its redrive was taken back' when 'act.message-cancel' then 'Cancelled in the console' when 'act.send' then 'Sent in the console'
                     else 'Event ' || e.event_type end || menzil._by_since(e.actor, null) || '.',
                   jsonb_strip_nulls(jsonb_build_object('event_id', e.id, 'actor', e.actor, 'via', e.via))
              from menzil._events_of('message', p_id::text, 100) e
            union all
            (select e.created_at, e.event_type, p_id, null, null, null,
                    case when e.event_type like 'circuit.%' and e.event_type <> 'circuit.reset'
                           then format('The circuit of %s %s.', quote_literal(v_channel),
                                       case e.event_type when 'circuit.half_open' then 'lets one message probe' else split_part(e.event_type, '.', 2) end)
                         else format('%s%s: %s.', upper(left(e.event_type, 1)) || translate(substr(e.event_type, 2), '._', '  '), menzil._by_since(e.actor, null),
                                     quote_literal(v_channel)) end,
                    jsonb_strip_nulls(jsonb_build_object('event_id', e.id, 'actor', e.actor, 'via', e.via))
               from (select e.* from menzil._events_of('channel', v_channel, 1000) e union all select e.* from menzil._events_of('endpoint', v_channel, 1000) e) e
              where e.created_at between v_from and v_to order by e.created_at desc limit 50)) q
     order by q.at, q.message_id, array_position(v_order, q.what);
end $$;
