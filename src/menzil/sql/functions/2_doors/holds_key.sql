-- Whether the message that a key names still holds it, as far as this snapshot shows. An expired one that waits holds it no more, although
-- no dequeue has ended it yet: a send that met its key would send nothing. A dequeue that is open may have leased it, so menzil._take_key
-- asks once more when such dequeues have ended.
create or replace function menzil._holds_key(p_message_id bigint, p_created_at timestamptz) returns boolean
language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_end menzil.done := menzil._end_of(p_message_id);
begin
  if v_end.lo_id is null then
    return exists (select 1 from menzil.message m where m.id = p_message_id and m.created_at = p_created_at
                     and ((m.expires_at <= clock_timestamp() - interval '1 s') is not true or menzil._lease_of(p_message_id) is not null));
  end if;
  return v_end.status = 'completed'
     and v_end.ended_at > clock_timestamp() - (select s.idempotency_retention from menzil.setting_value s) * interval '1 s';
end $$;
