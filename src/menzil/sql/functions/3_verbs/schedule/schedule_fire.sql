-- Fires one locked schedule for its latest slot up to p_now and moves it to the next one. True when a message was sent.
-- A function of its own, with this name: 0.1.0 calls it, also where it waits for a migration to end.
create or replace function menzil._schedule_fire(p_schedule menzil.schedule, p_now timestamptz) returns boolean
language plpgsql as $$
declare
  v_slot_at timestamptz;
  v_next_at timestamptz;
  v_high timestamptz := p_now;   -- no slot lies after it, up to p_now
  v_middle timestamptz;
  v_found timestamptz;
  v_expires_at timestamptz;
  v_message_id bigint;
  v_error text;
begin
  begin
    -- One question finds the slot after this one as a rule; after a long downtime the slots in between are halved away, not walked over.
    v_slot_at := p_schedule.next_at;
    v_next_at := menzil.cron_next(p_schedule.cron, p_schedule.time_zone, v_slot_at);
    while v_next_at <= p_now loop
      v_middle := v_next_at + (v_high - v_next_at) / 2;
      v_found := menzil.cron_next(p_schedule.cron, p_schedule.time_zone, v_middle);
      if v_found <= p_now then
        v_slot_at := v_found;
      else
        v_slot_at := v_next_at;
        v_high := v_middle;
      end if;
      v_next_at := menzil.cron_next(p_schedule.cron, p_schedule.time_zone, v_slot_at);
    end loop;
    -- A day is 24 hours here, in every time zone that the caller's session may have.
    v_expires_at := v_slot_at + make_interval(secs => extract(epoch from p_schedule.expires_after)::double precision);
    if v_expires_at <= p_now then
      v_error := 'The slot was found after its message would have expired; nothing was sent.';
    else
      insert into menzil.schedule_slot (schedule_id, slot_at) values (p_schedule.id, v_slot_at) on conflict do nothing;
      if found then
        v_message_id := menzil.send_with_options(
          p_endpoint_name => p_schedule.endpoint_name, p_payload => p_schedule.payload, p_priority => p_schedule.priority,
          p_idempotency_key => format('schedule:%s:%s', p_schedule.name, extract(epoch from v_slot_at)::bigint),
          p_expires_at => v_expires_at, p_ordering_key => p_schedule.ordering_key, p_headers => p_schedule.headers,
          p_metadata => coalesce(p_schedule.metadata, '{}') || jsonb_build_object('schedule', p_schedule.name,
            'slot_at', to_char(v_slot_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
        update menzil.schedule_slot l set message_id = v_message_id where l.schedule_id = p_schedule.id and l.slot_at = v_slot_at;
      end if;
    end if;
  exception when others then
    -- A deadlock or a full disk refuses nothing: the slot stays due for the next call. Any other refusal of a send is
    -- written down, never raised: one schedule must not hold up the others.
    if menzil._is_passing(sqlstate) then
      raise;
    end if;
    v_message_id := null;
    v_error := format('%s: %s', sqlstate, sqlerrm);
  end;
  update menzil.schedule s
     set next_at = coalesce(v_next_at, s.next_at),
         paused = v_next_at is null,   -- its zone is gone from the zone database: there is no next time to try
         last_slot_at = case when v_message_id is null then s.last_slot_at else v_slot_at end,
         last_message_id = coalesce(v_message_id, s.last_message_id),
         last_error = v_error
   where s.id = p_schedule.id;
  if v_error is not null and p_schedule.last_error is null then
    perform menzil._event('schedule.failed', 'schedule', p_schedule.name, null, to_jsonb(v_error));
  end if;
  if v_message_id is not null and random() < 0.02 then
    perform menzil._schedule_prune(p_schedule.id);
  end if;
  return v_message_id is not null;
end $$;

-- Keeps the last thousand slots of a schedule. The newest one alone is the proof that it fired; the rest is history.
create or replace function menzil._schedule_prune(p_schedule_id bigint) returns void
language sql as $$
  delete from menzil.schedule_slot l
   where l.schedule_id = p_schedule_id
     and l.slot_at <= (select k.slot_at from menzil.schedule_slot k where k.schedule_id = p_schedule_id order by k.slot_at desc offset 1000 limit 1)
$$;
