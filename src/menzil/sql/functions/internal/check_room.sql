-- Backpressure over all channels. Ids given out minus messages ended, two registers, is never less than the depth
-- (a rolled back send counts until the next look), so one subtraction answers nearly every send, at any depth: senders
-- make it themselves and come here only when it says "full".
-- Then the messages are counted, at most once in one microsecond per message of the limit (a second for a million).
-- What other transactions may have sent and not yet committed is counted too, but for 2,000.
create or replace function menzil._check_room(p_new bigint, p_limit bigint) returns void
language plpgsql as $$
declare
  v_ids bigint := menzil._register('menzil.message_id');
  v_guess bigint := v_ids - menzil._register('menzil.ended_count');
  v_depth bigint;
  v_now bigint;
begin
  if p_limit = 0 then
    return;
  end if;
  if v_guess + p_new <= p_limit then
    return;
  end if;
  v_depth := v_guess;
  v_now := menzil._microseconds(clock_timestamp());
  if v_now - menzil._register('menzil.counted_at') not between 0 and p_limit then
    v_depth := (select count(*) from menzil.message);
    if exists (select 1 from pg_snapshot_xip(pg_current_snapshot()) x(xid) where x.xid is distinct from pg_current_xact_id_if_assigned()) then
      v_depth := v_depth + greatest(0, v_guess - v_depth - 2000);
    else
      perform setval('menzil.ended_count', greatest(0, v_ids - v_depth));
    end if;
    perform setval('menzil.counted_at', v_now);
  end if;
  if v_depth + p_new > p_limit then
    raise exception using errcode = '53400',
      message = format('Queue backpressure: %s more on top of about %s messages would exceed the limit of %s.', p_new, v_depth, p_limit),
      hint = 'Try again when consumers have caught up, or raise the setting max_queue_size (0 switches the limit off).';
  end if;
end $$;
