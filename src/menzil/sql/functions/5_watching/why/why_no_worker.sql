-- No live worker serves the channel, or all that do had every slot in use at their last heartbeat. Programs that call message_dequeue themselves do not register: while such programs dequeue and no
-- worker is registered at all, nothing is said.
create or replace function menzil._why_no_worker(p_channel menzil.channel, p_now timestamptz) returns setof menzil.why
language plpgsql stable set jit = off as $$
declare
  v_endpoint boolean := p_channel.protocol is not null;
  v_alive bigint;
  v_serving record;
  v_last timestamptz := (select case when s.last_value > 0 then menzil._instant(s.last_value) end from menzil.swept_at s);
  v_gone timestamptz;   -- when the last worker that served it stopped or was heard of
begin
  select count(*) as n, sum(w.in_flight) as busy, sum(w.concurrency) as slots, bool_and(w.in_flight >= w.concurrency) as "full" into v_serving
    from menzil.worker w where menzil._serves(w, p_channel.name, v_endpoint, p_now);
  if v_serving.full then
    return query select 'workers_busy', format('%s %s %s: %s of %s slots were in use at the last heartbeat.',
        case v_serving.n when 1 then 'The only worker that serves' else format('All %s workers that serve', v_serving.n) end,
        quote_literal(p_channel.name), case v_serving.n when 1 then 'is busy' else 'are busy' end, v_serving.busy, v_serving.slots),
      null::timestamptz, null::timestamptz, null::text, 'menzil workers';
  end if;
  if v_serving.n > 0 then
    return;
  end if;
  select count(*) filter (where w.stopped_at is null and w.heartbeat_at >= p_now - interval '30 s'),
         max(coalesce(w.stopped_at, w.stopping_at, w.heartbeat_at)) filter (where p_channel.name = any (w.channels) or v_endpoint and (w.channels is null or '(endpoints)' = any (w.channels)))
    into v_alive, v_gone from menzil.worker w;
  if v_alive = 0 and menzil._dequeued_lately(p_now) then
    return;
  end if;
  return query select 'no_worker', format('No live worker serves %s %s. %s', case when v_endpoint then 'endpoint' else 'channel' end, quote_literal(p_channel.name),
      case when v_last is null then 'Nothing has ever dequeued here.'
           when menzil._dequeued_lately(p_now) then 'A program that calls message_dequeue itself may: the registry does not show it.'
           else format('The last dequeue of any channel was at %s.', menzil._time_text(v_last)) end),
    v_gone, null::timestamptz, null::text,
    case when v_endpoint then 'menzil worker' else 'menzil worker MODULE:APP' end;
end $$;
