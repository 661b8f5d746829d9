-- Backpressure over all channels. Ids given out minus messages ended, two registers, is never less than the depth (a rolled
-- back send counts until the next count), so one subtraction answers nearly every send, at any depth: senders make it
-- themselves and come here only when it says "full". Then what is live is counted, and the count is believed.
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
    v_guess := menzil._count_depth();
    perform setval('menzil.counted_at', v_now);
  end if;
  if v_guess + p_new > p_limit then
    raise exception using errcode = '53400',
      message = format('Queue backpressure: %s more on top of about %s messages would exceed the limit of %s.', p_new, v_guess, p_limit),
      hint = 'Try again when consumers have caught up, or raise the setting max_queue_size (0 switches the limit off).';
  end if;
end $$;

-- Counts what is live and corrects the register. An id that is not seen live has ended, is rolled back, or was given to a
-- transaction that is still open. Only a transaction that holds a lock on the log can be an open sender: when every one
-- that was open at the last count has ended, the ids given out before that count are not in doubt any more. The others are
-- taken as sent, but for 2,000.
create or replace function menzil._count_depth() returns bigint
language plpgsql as $$
declare
  v_ids bigint := menzil._register('menzil.message_id');
  v_guess bigint := v_ids - menzil._register('menzil.ended_count');
  v_live bigint := menzil._count_live();
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_before bigint := menzil._register('menzil.counted_xid');
  v_oldest bigint;
  v_newest bigint;
  v_most bigint := v_guess;
begin
  select min((v_next & ~4294967295) | t.transactionid::text::bigint), max((v_next & ~4294967295) | t.transactionid::text::bigint) into v_oldest, v_newest
    from pg_locks l join pg_locks t on t.virtualtransaction = l.virtualtransaction and t.locktype = 'transactionid' and t.mode = 'ExclusiveLock'
   where l.relation = 'menzil.line'::regclass and l.mode = 'RowExclusiveLock' and l.pid is distinct from pg_backend_pid();
  if v_oldest is null then
    v_most := v_live;
  elsif v_before > 0 and v_before <= v_next + 1000000 and v_oldest >= v_before then
    v_most := least(v_guess, v_live + v_ids - menzil._register('menzil.counted_ids'));
  end if;
  if v_most < v_guess then
    perform setval('menzil.ended_count', greatest(0, v_ids - v_most));
  end if;
  if v_oldest is null or v_before = 0 or v_before > v_next + 1000000 or v_oldest >= v_before then   -- a register of another cluster counts for nothing
    perform setval('menzil.counted_ids', v_ids), setval('menzil.counted_xid', greatest(v_next, v_newest + 1));
  end if;
  return v_live + greatest(0, v_most - v_live - 2000);
end $$;
