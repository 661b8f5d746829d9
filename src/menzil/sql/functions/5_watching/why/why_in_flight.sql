-- A message that a consumer has: who, until when, and whether that consumer was heard of lately.
create or replace function menzil._why_in_flight(p_lease menzil.lease, p_now timestamptz) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set jit = off as $$
declare
  v_who text := coalesce('Worker ' || quote_literal(p_lease.worker), 'A consumer without a name');
  v_heard timestamptz;   -- null: not in the registry, as consumers that only call message_dequeue
  v_stopped boolean;
begin
  select w.heartbeat_at, w.stopped_at is not null into v_heard, v_stopped from menzil.worker w where w.name = p_lease.worker order by w.heartbeat_at desc limit 1;
  return query select 'in_flight',
    case when p_lease.unlock_at <= p_now then
           format('The lease of %s ran out at %s in try %s: the next dequeue takes the message back.', lower(left(v_who, 1)) || substr(v_who, 2), menzil._time_text(p_lease.unlock_at), p_lease.attempt)
         else format('%s has it in try %s, until %s unless the lease is extended.%s', v_who, p_lease.attempt, menzil._time_text(p_lease.unlock_at),
           case when v_stopped then ' That worker has stopped: the message is taken back when the lease ends.'
                when v_heard < p_now - interval '30 s' then format(' That worker was last heard of at %s; if it is lost, the message is taken back when the lease ends.', menzil._time_text(v_heard)) else '' end) end,
    p_lease.leased_at, p_lease.unlock_at, p_lease.worker,
    case when p_lease.unlock_at <= p_now and not menzil._dequeued_lately(p_now) then 'menzil worker' end;
end $$;
