-- Takes a redrive back, by the id of its dead letter: the new message is cancelled, and the dead letter is failed again. False: too late,
-- the message is in flight or has ended. A letter that blocked its ordering key blocks it again.
create or replace function menzil.redrive_take_back(p_dlq_id bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_dead record;
begin
  perform menzil._refuse_null('The id of a dead letter') where p_dlq_id is null;
  select d.status, d.redriven_id, d.original_message_id into v_dead from menzil.dead_letter d where d.id = p_dlq_id for update;
  if not found then
    raise exception using errcode = '42704', message = format('There is no dead letter %s.', p_dlq_id),
      hint = 'Use an id of the view menzil.dlq, not that of the message; old ones are cleaned up.';
  elsif v_dead.status <> 'redriven' then
    raise exception using errcode = '55000', message = format('Dead letter %s was not redriven.', p_dlq_id), hint = 'There is nothing to take back.';
  elsif menzil._cancel_these(array[v_dead.redriven_id], true) = '{}' then
    return false;
  end if;
  perform menzil._event('redrive.taken_back', 'message', v_dead.original_message_id::text, null, null,
    jsonb_build_object('dlq_id', p_dlq_id, 'redriven_id', v_dead.redriven_id));
  return true;
end $$;
