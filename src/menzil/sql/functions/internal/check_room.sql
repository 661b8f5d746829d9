-- Backpressure over all channels. Ids given out minus messages ended, two registers, is never less than the depth
-- (a rolled back send counts until the next look), so one subtraction answers nearly every send, at any depth.
-- Only when it says "full" are the messages counted, at most once in one microsecond per message of the limit (a second
-- for a million). What other transactions may have sent and not yet committed is counted too, but for 2,000.
create or replace function menzil._check_room(p_new bigint, p_limit bigint) returns void
language plpgsql as $$
declare
  v_guess bigint;
  v_offset bigint;
  v_counted_at bigint;
  v_depth bigint;
  v_now bigint;
  v_alone boolean;
begin
  if p_limit = 0 then
    return;
  end if;
  select i.last_value - (not i.is_called)::integer - e.last_value, o.last_value, c.last_value into v_guess, v_offset, v_counted_at
    from menzil.message_id i, menzil.ended_count e, menzil.size_offset o, menzil.counted_at c;
  if v_guess - v_offset + p_new <= p_limit then
    return;
  end if;
  v_depth := v_guess - v_offset;
  v_now := menzil._microseconds(clock_timestamp());
  if v_now - v_counted_at not between 0 and p_limit then
    v_depth := (select count(*) from menzil.message);
    v_alone := not exists (select 1 from pg_snapshot_xip(pg_current_snapshot()) x(xid) where x.xid is distinct from pg_current_xact_id_if_assigned());
    if v_alone then
      perform setval('menzil.size_offset', v_guess - v_depth);
    else
      v_depth := v_depth + greatest(0, v_guess - v_offset - v_depth - 2000);
    end if;
    perform setval('menzil.counted_at', v_now);
  end if;
  if v_depth + p_new > p_limit then
    raise exception using errcode = '53400',
      message = format('Queue backpressure: %s more on top of about %s messages would exceed the limit of %s.', p_new, v_depth, p_limit),
      hint = 'Try again when consumers have caught up, or raise the setting max_queue_size (0 switches the limit off).';
  end if;
end $$;
