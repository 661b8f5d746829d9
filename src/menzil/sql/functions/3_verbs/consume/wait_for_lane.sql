-- Waits, at most 50 ms, for the lane whose turn has come, if another transaction holds it. 0: there is no such lane, or it was not
-- to be had; 1: no other transaction held it; 2: it was waited for.
-- PostgreSQL reports a lock timeout that fires in the moment the lock is had as 57014, as if a user had cancelled the call;
-- after the 50 ms it is taken for what it is.
create or replace function menzil._wait_for_lane(p_floor timestamptz, p_only integer[], p_push boolean) returns integer
language plpgsql
set lock_timeout = '50ms' as $$
declare
  v_now timestamptz := clock_timestamp();
  v_at tid;
  v_free boolean;   -- the lane was not held, and is locked now
begin
  if p_only is not null and not p_push then
    select t.at, (select true from menzil.lane f where f.ctid = t.at for update skip locked) into v_at, v_free
      from (select l.at from unnest(p_only) c(id)
              cross join lateral (select k.rank from menzil.lane_name k where k.channel_id = c.id offset 0) k
              cross join lateral (select l.ctid as at, l.next_at from menzil.lane l where l.channel_id = c.id and l.rank = k.rank order by l.v desc limit 1) l
             where l.next_at <= v_now order by k.rank, l.next_at limit 1) t;
  elsif p_push then
    select t.at, (select true from menzil.lane f where f.ctid = t.at for update skip locked) into v_at, v_free
      from (select l.at from menzil.rank_used u
              cross join lateral (select l.ctid as at from menzil.lane l where l.push and l.rank = u.rank and l.next_at >= p_floor and l.next_at <= v_now
                                     and (p_only is null or l.channel_id <> all (p_only)) order by l.next_at limit 1) l order by u.rank limit 1) t;
  else
    select t.at, (select true from menzil.lane f where f.ctid = t.at for update skip locked) into v_at, v_free
      from (select l.at from menzil.rank_used u
              cross join lateral (select l.ctid as at from menzil.lane l where l.rank = u.rank and l.next_at >= p_floor and l.next_at <= v_now
                                   order by l.next_at limit 1) l order by u.rank limit 1) t;
  end if;
  if v_at is null or v_free then
    return case when v_free then 1 else 0 end;
  end if;
  perform 1 from menzil.lane l where l.ctid = v_at for update;
  return 2;
exception
  when lock_not_available then
    return 0;
  when query_canceled then
    if clock_timestamp() - v_now not between interval '49 ms' and interval '80 ms' then
      raise;
    end if;
    return 2;
end $$;
