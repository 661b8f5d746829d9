drop function if exists menzil._take_turns(smallint, timestamptz, integer, integer, integer[]);
drop function if exists menzil._next_rank(smallint, integer[]);
drop function if exists menzil._wait_for_lane(integer[]);

-- Locks lanes whose turn has come, longest waiting first, all of one priority: the best from p_from on that has one.
-- Lanes that other consumers are at are passed over, and so are lanes that this very call has found empty: they are due
-- again after a moment, for somebody else; a call would go round among them for long. Each lane may give an even share of
-- the batch, if its gate agrees.
-- rank is null when there is no lane to visit; lanes is null when their gates are shut.
create or replace function menzil._take_turns(
  p_from smallint, p_now timestamptz, p_width integer, p_left integer, p_only integer[], p_push boolean,
  out rank smallint, out lanes tid[], out channels integer[], out names text[], out low_dues timestamptz[], out low_ids bigint[],
  out gated boolean, out early boolean, out rooms integer[], out epochs integer[], out careful boolean,
  out limited boolean, out probes integer[]
)
language plpgsql as $$
#variable_conflict use_column
begin
  rank := p_from - 1;
  loop
    rank := menzil._next_rank(rank, p_only, p_push);
    if rank is null then
      return;
    end if;
    if p_push then
      select array_agg(t.at), array_agg(t.channel_id), array_agg(t.name), array_agg(t.low_due), array_agg(t.low_id), bool_or(t.gated),
             bool_or(t.early_id <> '{}')
        into lanes, channels, names, low_dues, low_ids, gated, early
        from (select l.ctid as at, l.channel_id, l.name, l.low_due, l.low_id, l.gated, l.early_id from menzil.lane l
               where l.push and l.rank = _take_turns.rank and l.next_at <= p_now
                 and (l.phase = 2 and l.next_at > statement_timestamp() and l.visited_by = pg_current_xact_id_if_assigned()) is not true
               order by l.next_at limit p_width for update skip locked) t;
    elsif p_only is null then
      select array_agg(t.at), array_agg(t.channel_id), array_agg(t.name), array_agg(t.low_due), array_agg(t.low_id), bool_or(t.gated),
             bool_or(t.early_id <> '{}')
        into lanes, channels, names, low_dues, low_ids, gated, early
        from (select l.ctid as at, l.channel_id, l.name, l.low_due, l.low_id, l.gated, l.early_id from menzil.lane l
               where l.rank = _take_turns.rank and l.next_at <= p_now
                 and (l.phase = 2 and l.next_at > statement_timestamp() and l.visited_by = pg_current_xact_id_if_assigned()) is not true
               order by l.next_at limit p_width for update skip locked) t;
    else
      select array_agg(t.at), array_agg(t.channel_id), array_agg(t.name), array_agg(t.low_due), array_agg(t.low_id), bool_or(t.gated),
             bool_or(t.early_id <> '{}')
        into lanes, channels, names, low_dues, low_ids, gated, early
        from (select l.ctid as at, l.channel_id, l.name, l.low_due, l.low_id, l.gated, l.early_id from menzil.lane l
               where l.channel_id = any (p_only) and l.rank = _take_turns.rank and l.next_at <= p_now
                 and (l.phase = 2 and l.next_at > statement_timestamp() and l.visited_by = pg_current_xact_id_if_assigned()) is not true
               order by l.next_at limit p_width for update skip locked) t;
    end if;
    exit when lanes is not null;
  end loop;
  -- Somebody withdrew messages in the last ten minutes, perhaps in a transaction that is still open: a visit must not wait for it.
  careful := menzil._microseconds(p_now) - menzil._register('menzil.withdrawn_at') between -1000000 and 600000000;
  rooms := array_fill(p_left / cardinality(lanes) + 1, array[p_left % cardinality(lanes)])
        || array_fill(p_left / cardinality(lanes), array[cardinality(lanes) - p_left % cardinality(lanes)]);
  if gated then
    select g.lanes, g.channels, g.names, g.low_dues, g.low_ids, g.rooms, g.epochs, g.limited, g.probes
      into lanes, channels, names, low_dues, low_ids, rooms, epochs, limited, probes
      from menzil._ask_gates(lanes, channels, names, low_dues, low_ids, rooms) g;
  end if;
end $$;

-- The next priority after this one that has a lane waiting for its turn, due or not. Skips from priority to priority.
create or replace function menzil._next_rank(p_after smallint, p_only integer[], p_push boolean) returns smallint
language plpgsql stable as $$
begin
  if p_push then
    return (select l.rank from menzil.lane l where l.push and l.rank > p_after and l.next_at is not null order by l.rank limit 1);
  elsif p_only is null then
    return (select l.rank from menzil.lane l where l.rank > p_after and l.next_at is not null order by l.rank limit 1);
  end if;
  return (select min(l.rank) from menzil.lane l where l.channel_id = any (p_only) and l.rank > p_after and l.next_at is not null);
end $$;

-- Waits, at most 50 ms, for a lane whose turn has come and that another consumer holds. False: there is none.
create or replace function menzil._wait_for_lane(p_only integer[], p_push boolean) returns boolean
language plpgsql
set lock_timeout = '50ms' as $$
declare
  v_now timestamptz := clock_timestamp();
  v_channel integer;
  v_rank smallint := -1;
begin
  loop
    v_rank := menzil._next_rank(v_rank, p_only, p_push);
    if v_rank is null then
      return false;
    end if;
    if p_push then
      select l.channel_id into v_channel from menzil.lane l where l.push and l.rank = v_rank and l.next_at <= v_now order by l.next_at limit 1;
    elsif p_only is null then
      select l.channel_id into v_channel from menzil.lane l where l.rank = v_rank and l.next_at <= v_now order by l.next_at limit 1;
    else
      select l.channel_id into v_channel from menzil.lane l
       where l.channel_id = any (p_only) and l.rank = v_rank and l.next_at <= v_now order by l.next_at limit 1;
    end if;
    exit when v_channel is not null;
  end loop;
  perform 1 from menzil.lane l where l.channel_id = v_channel and l.rank = v_rank for update;
  return true;
exception when lock_not_available then
  return false;
end $$;
