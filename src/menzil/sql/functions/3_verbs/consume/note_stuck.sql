-- A message that the queue cannot move, said once in ten minutes.
create or replace function menzil._note_stuck(p_id bigint, p_error text, p_now timestamptz) returns void
language plpgsql as $$
begin
  if not exists (select 1 from menzil.event e where e.created_at > p_now - interval '10 min' and e.event_type = 'message.stuck'
                    and e.entity_id = p_id::text) then
    perform menzil._event('message.stuck', 'message', p_id::text, null, null, jsonb_build_object('error', left(p_error, 1000)));
  end if;
end $$;
