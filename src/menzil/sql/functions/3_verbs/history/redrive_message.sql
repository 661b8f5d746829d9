-- One dead letter, by its id in menzil.dlq. Returns the id of the new message.
create or replace function menzil.redrive_message(p_dlq_id bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_dead record;
  v_channel menzil.channel;
  v_new bigint;
begin
  perform menzil._refuse_null('The id of a dead letter') where p_dlq_id is null;
  -- Waits for another transaction that redrives it at this moment, and then sees that it was done.
  select d.status, d.redriven_id, d.channel_id, d.original_message_id into v_dead from menzil.dead_letter d where d.id = p_dlq_id for update;
  if not found then
    raise exception using errcode = '42704', message = format('There is no dead letter %s.', p_dlq_id),
      hint = 'Use an id of the view menzil.dlq, not that of the message; old ones are cleaned up.';
  elsif v_dead.status <> 'failed' then
    raise exception using errcode = '55000', message = format('Dead letter %s was redriven already, as message %s.', p_dlq_id, v_dead.redriven_id),
      hint = 'If that message died too, it has a dead letter of its own in menzil.dlq.';
  end if;
  select c.* into v_channel from menzil.channel c where c.id = v_dead.channel_id;
  perform menzil._check_open(v_channel);
  perform menzil._refuse_erased(v_dead.original_message_id);
  v_new := (menzil._redrive(array[p_dlq_id]))[1];
  perform menzil._event('redrive', 'message', v_dead.original_message_id::text, null, null,
    jsonb_build_object('dlq_id', p_dlq_id, 'endpoint', v_channel.name, 'redriven_id', v_new, 'messages', 1));
  return v_new;
end $$;
