-- How a message ended. A repair is told only where it would be done: nothing is left to send of an erased message, and a channel that is gone
-- takes none.
create or replace function menzil._why_ended(p_id bigint) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_done menzil.done := menzil._end_of(p_id);
  v_dead menzil.dead_letter;
  v_tries text := case v_done.attempt when 0 then 'before a consumer had leased it' when 1 then 'after 1 try' else format('after %s tries', v_done.attempt) end;
  v_time text := menzil._time_text(v_done.ended_at);
  v_erased boolean := menzil._is_erased(p_id);
  v_gone text;
begin
  select d.* into v_dead from menzil.dead_letter d where d.original_message_id = p_id;
  select c.name into v_gone from menzil.message m
    cross join lateral (select c.name from menzil.channel c where c.id = m.channel_id and c.dropped_at is not null offset 0) c
   where m.id = p_id and v_done.status in ('failed', 'expired');
  return query select 'ended',
    case v_done.status
      when 'completed' then format('It completed at %s in try %s%s.', v_time, v_done.attempt, ' at ' || v_done.worker)
      when 'failed' then format('It failed for good at %s, %s%s.%s', v_time, v_tries, ': ' || rtrim(menzil._told_cause(v_dead.last_error), '.'),
        case when v_dead.id is null then '' when v_dead.redriven_id is not null then format(' Dead letter %s was redriven as message %s.', v_dead.id, v_dead.redriven_id)
             else format(' It is dead letter %s.', v_dead.id) end)
      when 'expired' then format('It expired at %s, %s.', v_time, v_tries)
      else format('It was cancelled at %s, %s.', v_time, v_tries) end
      || case when v_erased then ' Its body was erased.' else '' end || coalesce(' Its channel ' || quote_literal(v_gone) || ' is gone.', ''),
    v_done.ended_at, null::timestamptz, null::text,
    case when v_done.status = 'completed' or v_done.status = 'cancelled' then null
         when v_dead.redriven_id is not null then menzil._command('message why', v_dead.redriven_id::text)
         when v_erased or v_gone is not null then null
         when v_dead.id is not null then menzil._command('dlq redrive', v_dead.id::text)
         else menzil._command('replay', p_id::text) end;
end $$;
