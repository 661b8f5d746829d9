-- Whose turn is before a message that could be leased: in its channel, of a higher priority in others, and channels of its priority
-- that have their turn before. Counts end at 10,000.
create or replace function menzil._why_turn(
  p_message menzil.sent, p_place_at timestamptz, p_in_log bigint, p_elsewhere bigint, p_blocked boolean, p_now timestamptz
) returns setof menzil.why
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_floor timestamptz := (select menzil._instant(s.last_value) from menzil.turn_mark s);
  v_own bigint := p_in_log;
  v_above bigint;
  v_lanes bigint;
  v_turn timestamptz := (select l.next_at from menzil.lane l where l.channel_id = p_message.channel_id and l.rank = p_message.rank order by l.v desc limit 1);
begin
  for v_rank in 0 .. p_message.rank loop
    exit when v_own > 10000;
    v_own := v_own + case when v_rank < p_message.rank then menzil._before(p_message.channel_id, v_rank::smallint, 'infinity', 9223372036854775807, 10001)
                          else menzil._before(p_message.channel_id, p_message.rank, p_place_at, p_message.id, 10001) end;
  end loop;
  v_own := greatest(0, v_own - (
    select count(*) from (select w.id from menzil.withdrawn w limit 1000) w   -- cancelled, and still counted
      cross join lateral (select 10 - m.priority as rank, coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at) as place_at
                            from menzil.message m where m.id = w.id and m.channel_id = p_message.channel_id offset 0) m
     where m.rank < p_message.rank or m.rank = p_message.rank and (m.place_at, w.id) < (p_place_at, p_message.id)));
  -- Lanes of a higher priority that have their turn and whose gate is not shut: 1,000 of each priority and 2,000 runs at most.
  v_above := p_elsewhere + coalesce((
    select sum(q.n) from (
      select r.n - r.gone as n
        from generate_series(0, p_message.rank - 1) k(rank)
        cross join lateral (select l from menzil.lane l where l.rank = k.rank and l.next_at >= v_floor and l.next_at <= p_now order by l.next_at limit 1000) l
        cross join lateral menzil._runs_ahead(l.l, 1000) r
       where (l.l).channel_id <> p_message.channel_id
         and not exists (select 1 from menzil.gate g where (l.l).gated and g.channel_id = (l.l).channel_id and (g.paused or g.circuit <> 0 or g.wait_until > p_now)) limit 2000) q), 0);
  v_lanes := (select count(*) from (
    select 1 from menzil.lane l where l.rank = p_message.rank and l.next_at >= v_floor and l.next_at <= p_now and l.next_at < coalesce(v_turn, p_now)
       and l.channel_id <> p_message.channel_id
       -- Asked of each lane: a join would read all gates.
       and not (l.gated and coalesce((select g.paused or g.circuit <> 0 or g.wait_until > p_now from menzil.gate g where g.channel_id = l.channel_id), false)) limit 1001) l);
  if v_own + v_above + v_lanes = 0 then
    return query select 'next', case when p_blocked then 'Then its turn is next.' else 'Its turn is next.' end, null::timestamptz, null::timestamptz, null::text, null::text;
    return;
  end if;
  if v_own + v_above = 0 then
    return query select 'waiting_turn', case when p_blocked then 'Then ' else '' end || case when v_lanes = 1 then '1 channel of its priority has its turn before it.'
        when v_lanes > 1000 then case when p_blocked then 'm' else 'M' end || 'ore than 1000 channels of its priority have their turn before it.'
        else format('%s channels of its priority have their turn before it.', v_lanes) end,
      null::timestamptz, null::timestamptz, null::text, null::text;
    return;
  end if;
  return query select 'waiting_turn',
    format('%s before it in its channel%s%s.',
      case when p_blocked then 'Then ' else '' end || case when v_own > 10000 then case when p_blocked then 'm' else 'M' end || 'ore than 10000 messages are' when v_own = 1 then '1 message is' else v_own || ' messages are' end,
      case when v_above > 10000 then ', more than 10000 of a higher priority in other channels' when v_above > 0 then format(', %s of a higher priority in other channels', v_above) else '' end,
      case when v_lanes > 1000 then ', and more than 1000 channels of its priority have their turn before'
           when v_lanes = 1 then ', and 1 channel of its priority has its turn before'
           when v_lanes > 1 then format(', and %s channels of its priority have their turn before', v_lanes) else '' end),
    null::timestamptz, null::timestamptz, null::text, null::text;
end $$;
