-- The reasons of menzil.message_why, in any order.
create or replace function menzil._why(p_id bigint, p_now timestamptz) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_found record;
  v_message menzil.sent;   -- without its body, which may be large
  v_channel menzil.channel;
  v_lease menzil.lease;
  v_log record;
  v_place record;
  v_blocks menzil.why[];
begin
  select m.channel_id, m.priority, m.created_at, m.scheduled_at, m.expires_at, m.ordering_key, m.xmax, r.due_at,
         coalesce(r.place_at, m.scheduled_at, m.created_at) as place_at into v_found
    from menzil.message m left join lateral (select r.place_at, r.due_at from menzil.returned r where r.id = p_id offset 0) r on true where m.id = p_id limit 1;
  if not found then
    return query select w.* from menzil._why_unknown(p_id) w;
    return;
  elsif (menzil._end_of(p_id)).lo_id is not null then
    return query select w.* from menzil._why_ended(p_id) w;
    return;
  end if;
  if menzil._is_copy() then
    return query select 'copy', menzil.copy_notice(), null::timestamptz, null::timestamptz, null::text, 'menzil adopt --yes';
  end if;
  select l.* into v_lease from menzil.lease l where l.lo_id <= p_id and l.hi_id >= p_id and (l.ids is null or p_id = any (l.ids)) order by l.lo_id desc limit 1;
  if found then
    return query select w.* from menzil._why_in_flight(v_lease, p_now) w;
    return;
  end if;
  if v_found.expires_at <= p_now then   -- no consumer gets it, so further reasons do not matter
    return query select 'expired', format('It expired at %s: no consumer gets it. The job expiry, or the dequeue that meets it, ends it.', menzil._time_text(v_found.expires_at)),
      v_found.expires_at, null::timestamptz, null::text, null::text;
    return;
  end if;
  v_message := row(p_id, v_found.channel_id, 10 - v_found.priority, v_found.scheduled_at, v_found.expires_at, v_found.ordering_key);
  select c.* into v_channel from menzil.channel c where c.id = v_message.channel_id;
  v_log := menzil._log_seen(v_message, v_found.place_at);
  v_place := menzil._place_of(v_message, v_found.place_at, v_found.due_at, v_log.here, v_log.full, p_now);
  v_blocks := array(select w from menzil._why_channel(v_channel, p_now) w) || array(select w from menzil._why_held(v_message, v_found.xmax, p_now) w);
  v_blocks := v_blocks || array(select w from menzil._why_waiting(v_message, v_channel, v_place.place, v_place.due_at, v_found.created_at, p_now) w
                                 where w.reason <> all (select b.reason from unnest(v_blocks) b));
  return query select b.* from unnest(v_blocks) b;
  if v_place.place in ('run', 'line', 'key') then
    return query select w.* from menzil._why_turn(v_message, v_found.place_at, v_log.before + v_log.higher, v_log.elsewhere,
      exists (select 1 from unnest(v_blocks) b where b.reason not in ('channel_released', 'no_worker', 'workers_busy')), p_now) w;
  elsif v_place.place = 'log' then
    return query select 'waiting_turn', 'More than 10000 sends before it were not read by any dequeue yet.', null::timestamptz, null::timestamptz, null::text, null::text;
  end if;
  return query select w.* from menzil._why_expires(v_message.expires_at, v_blocks, p_now) w;
end $$;
