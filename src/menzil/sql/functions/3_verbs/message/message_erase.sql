-- Erases what one message says: payload, content, headers, metadata, state, errors and responses become NULL, wherever they
-- are kept; the facts of its life stay. For a person's right to be forgotten. A message that is still live is refused: cancel
-- it, or let it end. Returns whether there was anything left to erase.
create or replace function menzil.message_erase(p_id bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_erased boolean;
begin
  perform menzil._check_known(p_id);
  if (menzil._end_of(p_id)).lo_id is null then
    raise exception using errcode = '55000', message = format('Message %s has not ended yet.', p_id),
      hint = 'Cancel it with menzil.message_cancel(id), or let it end, and erase it then.';
  end if;
  update menzil.message m set payload = null, content = null, payload_hash = null, headers = null, metadata = null
   where m.id = p_id and (m.payload is not null or m.content is not null or m.payload_hash is not null or m.headers is not null or m.metadata is not null);
  v_erased := found;
  -- Its message, too: a send that took the key meanwhile changed this row.
  update menzil.key k set payload_hash = null where k.message_id = p_id and k.ctid = any (array(   -- by the row: a join may read all keys
    select h.at from menzil.message m
      cross join lateral (select k.ctid as at from menzil.key k
                           where k.channel_id = m.channel_id and k.idempotency_key = m.idempotency_key and k.message_id = p_id and k.payload_hash is not null offset 0) h
     where m.id = p_id));
  v_erased := found or v_erased;
  update menzil.returned r set last_error = null, state = null where r.id = p_id and (r.last_error is not null or r.state is not null);
  v_erased := found or v_erased;
  update menzil.attempt t set error = null, response = null where t.message_id = p_id and (t.error is not null or t.response is not null);
  v_erased := found or v_erased;
  update menzil.dead_letter d set (last_error, cause, error_class, cause_hash) = (select null, e.cause, e.error_class, e.cause_hash from menzil._cause_of(null) e)
   where d.original_message_id = p_id and d.last_error is not null;
  v_erased := found or v_erased;
  update menzil.done d set responses[coalesce(array_position(d.ids, p_id), (p_id - d.lo_id + 1)::integer)] = null
   where d.lo_id > p_id - 4096 and d.lo_id <= p_id and d.hi_id >= p_id and (d.ids is null or p_id = any (d.ids)) and d.responses is not null
     and d.responses[coalesce(array_position(d.ids, p_id), (p_id - d.lo_id + 1)::integer)] is not null;
  v_erased := found or v_erased;
  if v_erased then
    perform menzil._event('message.erased', 'message', p_id::text, null, null);
  end if;
  return v_erased;
end $$;
