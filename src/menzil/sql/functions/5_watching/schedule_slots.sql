-- The last slots of a schedule, newest first: those that sent a message, each with the message and how it stands, and between them those that
-- passed without one, because the schedule was paused, no worker ran or a send was refused. Missed slots in a row are one line, with their
-- number; at most 100 of them are counted.
create or replace function menzil.schedule_slots(p_name text, p_limit integer default 10) returns table (
  slot_at timestamptz, last_at timestamptz, slots integer, message_id bigint, status text
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_schedule menzil.schedule;
  v_slot record;
  v_until timestamptz := clock_timestamp();   -- slots before it were told
  v_left integer := p_limit;
  v_next timestamptz;
begin
  perform menzil._check_limit(p_limit, 100);
  select s.* into v_schedule from menzil.schedule s where s.name = p_name;
  perform menzil._refuse_schedule(p_name) where not found;
  for v_slot in
    select l.slot_at, l.message_id from (
      (select l.slot_at, l.message_id from menzil.schedule_slot l where l.schedule_id = v_schedule.id order by l.slot_at desc limit p_limit)
      union all
      select v_schedule.created_at, null where (select count(*) from (select 1 from menzil.schedule_slot l where l.schedule_id = v_schedule.id limit p_limit) l) < p_limit) l
     order by l.slot_at desc
  loop
    slot_at := null;
    slots := 0;
    v_next := menzil.cron_next(v_schedule.cron, v_schedule.time_zone, v_slot.slot_at);
    while v_next < v_until and slots < 100 loop
      slot_at := coalesce(slot_at, v_next);
      last_at := v_next;
      slots := slots + 1;
      v_next := menzil.cron_next(v_schedule.cron, v_schedule.time_zone, v_next);
    end loop;
    -- The slot that is due at this moment is late and not missed: a worker sends its message.
    if slots > 0 and not (v_schedule.next_at = slot_at and not v_schedule.paused) then
      return query select slot_at, last_at, slots, null::bigint, 'missed'::text;
      v_left := v_left - 1;
    end if;
    exit when v_left <= 0 or v_slot.message_id is null and v_slot.slot_at = v_schedule.created_at;
    return query select v_slot.slot_at, v_slot.slot_at, 1, v_slot.message_id,
      case when v_slot.message_id is null then 'missed'
           when not exists (select 1 from menzil.message m where m.id = v_slot.message_id) then 'gone'
           else coalesce((menzil._end_of(v_slot.message_id)).status::text, case when menzil._lease_of(v_slot.message_id) is not null then 'processing' else 'pending' end) end;
    v_left := v_left - 1;
    exit when v_left <= 0;
    v_until := v_slot.slot_at;
  end loop;
end $$;
