-- Backpressure over all channels. Ids given out minus messages ended, two registers, is never less than the depth
-- (a rolled back send counts until the next look), so one subtraction answers nearly every send, at any depth: senders
-- make it themselves and come here only when it says "full".
-- Then the messages are counted, at most once in one microsecond per message of the limit (a second for a million).
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
  if v_now - menzil._register('menzil.counted_at') not between 0 and p_limit then
    v_guess := menzil._count_messages();
    perform setval('menzil.counted_at', v_now);
  end if;
  if v_guess + p_new > p_limit then
    raise exception using errcode = '53400',
      message = format('Queue backpressure: %s more on top of about %s messages would exceed the limit of %s.', p_new, v_guess, p_limit),
      hint = 'Try again when consumers have caught up, or raise the setting max_queue_size (0 switches the limit off).';
  end if;
end $$;

-- Counts the messages. An id without a message is rolled back, or sent by a transaction that is still open: which, is
-- known for ids given out before the last count once all transactions of that time have ended. The others are taken as
-- sent, but for 2,000.
create or replace function menzil._count_messages() returns bigint
language plpgsql as $$
declare
  v_ids bigint := menzil._register('menzil.message_id');
  v_most bigint := v_ids - menzil._register('menzil.ended_count');
  v_before bigint := menzil._register('menzil.counted_ids');
  v_snapshot pg_snapshot := pg_current_snapshot();
  v_depth bigint;
begin
  if pg_snapshot_xmin(v_snapshot)::text::bigint >= menzil._register('menzil.counted_xid') then
    select count(*), count(*) filter (where m.id <= v_before) + v_ids - v_before into v_depth, v_before from menzil.message m;
    if v_before < v_most then
      v_most := v_before;
      perform setval('menzil.ended_count', v_ids - v_most);
    end if;
    perform setval('menzil.counted_ids', v_ids), setval('menzil.counted_xid', menzil._newest_transaction(v_snapshot) + 1);
  else
    v_depth := (select count(*) from menzil.message);
  end if;
  return v_depth + greatest(0, v_most - v_depth - 2000);
end $$;

-- The newest transaction that may be open now. The snapshot itself ends at the last one that finished.
create or replace function menzil._newest_transaction(p_snapshot pg_snapshot) returns bigint
language plpgsql as $$
declare
  v_end bigint := pg_snapshot_xmax(p_snapshot)::text::bigint;
begin
  return greatest(v_end, (select max((v_end & ~4294967295) | l.transactionid::text::bigint) from pg_locks l where l.locktype = 'transactionid'));
end $$;
