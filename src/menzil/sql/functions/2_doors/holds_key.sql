-- Whether the message that a key names still holds it.
create or replace function menzil._holds_key(p_message_id bigint, p_created_at timestamptz) returns boolean
language plpgsql stable
set enable_seqscan = off set jit = off as $$
declare
  v_end menzil.done := menzil._end_of(p_message_id);
begin
  if v_end.lo_id is null then
    return exists (select 1 from menzil.message m where m.id = p_message_id and m.created_at = p_created_at);
  end if;
  return v_end.status = 'completed'
     and v_end.ended_at > clock_timestamp() - (select s.idempotency_retention from menzil.setting_value s) * interval '1 s';
end $$;
