-- Cancels a waiting message. False: too late, it is in flight or has ended. A dead letter that blocks its ordering key
-- stops blocking it.
create or replace function menzil.message_cancel(p_id bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_dead menzil.dead_letter;
begin
  perform menzil._tell_withdrawal();
  if menzil._withdraw(array[p_id], true) <> '{}' then
    perform menzil._end_messages(array[p_id], 'cancelled', v_now);
    return true;
  end if;
  update menzil.dead_letter d set blocks_key = false where d.original_message_id = p_id and d.blocks_key returning d.* into v_dead;
  if found then
    perform menzil._free_keys(array[p_id], array[v_dead.channel_id], array[v_dead.ordering_key], v_now);
    return true;
  end if;
  perform menzil._check_known(p_id);
  return false;
end $$;

-- Refuses an id that never was, or whose history is gone.
create or replace function menzil._check_known(p_id bigint) returns void
language plpgsql as $$
begin
  if p_id is null then
    perform menzil._refuse_null('A message id');
  elsif not exists (select 1 from menzil.message m where m.id = p_id) and not exists (select 1 from menzil.archive a where a.id = p_id) then
    raise exception using errcode = '42704', message = format('There is no message %s.', p_id),
      hint = 'Use the id that send returned; completed messages without an archive and dropped months leave no trace.';
  end if;
end $$;

-- Makes a message that waits for its retry or schedule due now. False: it does not wait for a time.
create or replace function menzil.message_retry_now(p_id bigint) returns boolean
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  with waiting as materialized (
    select s.ctid as at from menzil.message m cross join lateral (
      select s.ctid from menzil.scheduled s where s.due_at = m.due_at and s.id = m.id for update skip locked offset 0) s
     where m.id = p_id
  ), moved as (
    update menzil.scheduled s set due_at = v_now where s.ctid = any (array(select w.at from waiting w)) returning s.id
  )
  update menzil.message m set due_at = v_now, next_retry_at = case when m.next_retry_at is not null then v_now end
    from moved v where m.id = v.id;
  if found then
    -- Otherwise it would look as if it had been delivered before its time.
    perform menzil._event('message.hurried', 'message', p_id::text, null, null);
    return true;
  end if;
  perform menzil._check_known(p_id);
  return false;
end $$;
