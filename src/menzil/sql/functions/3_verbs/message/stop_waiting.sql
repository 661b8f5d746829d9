-- Takes a message off the schedule, or out of the line behind its ordering key. False: it waits at neither, or is just becoming due.
create or replace function menzil._stop_waiting(p_id bigint, p_channel_id integer, p_key text) returns boolean
language plpgsql set enable_seqscan = off set jit = off as $$
begin
  delete from menzil.scheduled s where s.ctid = any (array(
    select d.ctid from menzil.scheduled d where d.due_at = menzil._due_of(p_id) and d.id = p_id for update skip locked));
  if not found then
    delete from menzil.key_queue k where k.channel_id = p_channel_id and k.ordering_key = p_key and k.waits = 1 and k.id = p_id;
  end if;
  return found;
end $$;
