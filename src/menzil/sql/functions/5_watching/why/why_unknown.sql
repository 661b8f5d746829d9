-- Why there is no message with this id, as far as that can be known. Ids are given out by a sequence, which rolls nothing back.
create or replace function menzil._why_unknown(p_id bigint) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_last bigint := (select case when s.is_called then s.last_value else 0 end from menzil.message_id s);
  v_first bigint := (select min(m.id) from menzil.message m);
  v_open boolean := (menzil._open_senders()).n > 0;
  v_off boolean := (select not s.archive_completed from menzil.setting_value s);
begin
  return query select 'unknown',
    case when p_id < 1 then format('Message %s was never sent: ids begin with 1.', p_id)
         when p_id > v_last and v_last = 0 then format('Message %s was never sent: no message was sent yet.', p_id)
         when p_id > v_last then format('Message %s was never sent: the highest id so far is %s.', p_id, v_last)
         when p_id < v_first and not v_open then
           format('Message %s is not here: it is older than the oldest message that is kept (%s), and was cleaned up or rolled back.', p_id, v_first)
         else format('Message %s is not here: its transaction was rolled back%s, or it was cleaned up%s.', p_id,
                case when v_open then ' or is still open' else '' end, case when v_off then ' after it completed (archive_completed is off)' else '' end) end,
    null::timestamptz, null::timestamptz, null::text, null::text;
end $$;
