-- Backpressure over all channels. Ids given out minus ids known to be gone, two registers, is never less than the depth, so one
-- subtraction answers nearly every send, at any depth: senders make it themselves and come here only when it says "full".
-- Then the ends since the last tally are added up, and if that is not enough, live messages are counted.
create or replace function menzil._check_room(p_new bigint, p_limit bigint) returns void
language plpgsql as $$
declare
  v_guess bigint := menzil._register('menzil.message_id') - menzil._register('menzil.ended_count');
  v_now bigint;
begin
  if p_limit = 0 or v_guess + p_new <= p_limit then
    return;
  end if;
  v_now := menzil._microseconds(clock_timestamp());
  -- Counting costs microseconds per hundred messages: it takes at most a tenth of the time.
  if v_now - menzil._register('menzil.counted_at') not between 0 and p_limit / 100 then
    v_guess := menzil._tally(false);
    if v_guess + p_new > p_limit then
      v_guess := menzil._tally(true);
    end if;
    perform setval('menzil.counted_at', v_now);
  end if;
  if v_guess + p_new > p_limit then
    raise exception using errcode = '53400',
      message = format('Queue backpressure: %s more on top of about %s messages would exceed the limit of %s.', p_new, v_guess, p_limit),
      hint = 'Try again when consumers have caught up, or raise the setting max_queue_size (0 switches the limit off).';
  end if;
end $$;
