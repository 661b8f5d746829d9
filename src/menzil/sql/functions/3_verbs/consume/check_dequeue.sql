-- Checks the arguments of a dequeue and turns channel names into ids.
create or replace function menzil._check_dequeue(p_lock_ms bigint, p_limit integer, p_channels text[]) returns integer[]
language plpgsql stable as $$
declare
  v_only integer[];
  v_unknown text;
begin
  if p_lock_ms is null or p_limit is null then
    perform menzil._refuse_null('A lease time and a limit');
  elsif p_lock_ms not between 1 and 604800000 then
    perform menzil._refuse_value(format('A lease of %s ms is out of range, it must be 1 ms to 7 days.', p_lock_ms), 'Lease shortly and send heartbeats.');
  elsif p_limit not between 1 and 10000 then
    perform menzil._refuse_value(format('A limit of %s is out of range, it must be 1 to 10000.', p_limit),
      case when p_limit < 1 then 'Give 1 or more.' else 'Dequeue several times for more.' end);
  elsif current_setting('transaction_isolation') <> 'read committed' then
    -- Locking and reading are two statements, and the second must see what was committed before the lock.
    raise exception using errcode = '25001', message = 'Messages are dequeued in READ COMMITTED transactions only.',
      hint = 'Call it in a short transaction of its own: begin isolation level read committed.';
  end if;
  if array_ndims(p_channels) > 1 then
    perform menzil._refuse_shape();
  elsif p_channels is not null then
    if cardinality(p_channels) = 1 then   -- the common case in few steps
      v_only := array(select c.id from menzil.channel c where c.name = p_channels[1]);
      if v_only <> '{}' then
        return v_only;
      end if;
    end if;
    -- A channel that is gone may still get a message, sent by a transaction that was open when it went.
    select array_agg(distinct c.id), min(n.name) filter (where c.id is null) into v_only, v_unknown
      from unnest(p_channels) n(name) left join lateral (select c.id from menzil.channel c where c.name = n.name offset 0) c on true;
    if v_unknown is not null or array_position(p_channels, null) is not null then
      perform menzil._refuse_unknown(v_unknown);
    end if;
    return coalesce(v_only, '{}');
  end if;
  return null;
end $$;
