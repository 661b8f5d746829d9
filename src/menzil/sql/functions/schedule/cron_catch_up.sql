-- The latest slot up to p_until and the one after it, from a slot known to have passed. One question is enough as a
-- rule; after a long downtime the slots in between are halved away, not walked over.
create or replace function menzil._cron_catch_up(
  p_cron text, p_time_zone text, p_slot_at timestamptz, p_until timestamptz, out slot_at timestamptz, out next_at timestamptz
)
language plpgsql immutable as $$
declare
  v_high timestamptz := p_until;   -- no slot lies after it, up to p_until
  v_back interval := interval '1 minute';
  v_found timestamptz;
begin
  slot_at := p_slot_at;
  next_at := menzil.cron_next(p_cron, p_time_zone, slot_at);
  if next_at is null or next_at > p_until then
    return;
  end if;
  -- Look back from the end, twice as far each time, until there is a slot in sight.
  while p_until - v_back > slot_at loop
    v_found := menzil.cron_next(p_cron, p_time_zone, p_until - v_back);
    if v_found <= p_until then
      slot_at := v_found;
      exit;
    end if;
    v_high := p_until - v_back;
    v_back := v_back * 2;
  end loop;
  loop
    next_at := menzil.cron_next(p_cron, p_time_zone, slot_at);
    if next_at is null or next_at > p_until then
      return;
    end if;
    slot_at := next_at;
    if v_high > slot_at then
      v_found := menzil.cron_next(p_cron, p_time_zone, slot_at + (v_high - slot_at) / 2);
      if v_found <= p_until then
        slot_at := v_found;
      else
        v_high := slot_at + (v_high - slot_at) / 2;
      end if;
    end if;
  end loop;
end $$;
