-- Makes a message that waits for its retry or schedule due now. False: it does not wait for a time.
create or replace function menzil.message_retry_now(p_id bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  perform menzil._check_known(p_id);
  update menzil.scheduled s set due_at = v_now, place_at = least(s.place_at, v_now) where s.ctid = any (array(
    select d.ctid from menzil.scheduled d where d.due_at = menzil._due_of(p_id) and d.id = p_id for update skip locked));
  if not found then
    return false;
  end if;
  -- The position of a message stands in one place: a first schedule that is hurried has a row in returned from now on.
  insert into menzil.returned as r (id, created_at, attempts, place_at, due_at)
    select m.id, m.created_at, 0, least(coalesce(m.scheduled_at, m.created_at), v_now), v_now from menzil.message m where m.id = p_id
  on conflict on constraint returned_pkey do update set due_at = v_now, place_at = least(r.place_at, v_now);
  -- Otherwise it would look as if it had been delivered before its time.
  perform menzil._event('message.hurried', 'message', p_id::text, null, null);
  return true;
end $$;
