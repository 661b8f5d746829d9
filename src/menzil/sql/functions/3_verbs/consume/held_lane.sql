-- The lane whose turn has come. free: no other transaction held it, and it is locked now; null: another transaction holds it.
create or replace function menzil._held_lane(p_floor timestamptz, p_only integer[], p_push boolean, out at tid, out free boolean)
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if p_only is not null and not p_push then
    select t.at, (select true from menzil.lane f where f.ctid = t.at for update skip locked) into at, free
      from (select l.at from unnest(p_only) c(id)
              cross join lateral (select k.rank from menzil.lane_name k where k.channel_id = c.id offset 0) k
              cross join lateral (select l.ctid as at, l.next_at from menzil.lane l where l.channel_id = c.id and l.rank = k.rank order by l.v desc limit 1) l
             where l.next_at <= v_now order by k.rank, l.next_at limit 1) t;
  elsif p_push then
    select t.at, (select true from menzil.lane f where f.ctid = t.at for update skip locked) into at, free
      from (select l.at from menzil.rank_used u
              cross join lateral (select l.ctid as at from menzil.lane l where l.push and l.rank = u.rank and l.next_at >= p_floor and l.next_at <= v_now
                                     and (p_only is null or l.channel_id <> all (p_only)) order by l.next_at limit 1) l order by u.rank limit 1) t;
  else
    select t.at, (select true from menzil.lane f where f.ctid = t.at for update skip locked) into at, free
      from (select l.at from menzil.rank_used u
              cross join lateral (select l.ctid as at from menzil.lane l where l.rank = u.rank and l.next_at >= p_floor and l.next_at <= v_now
                                   order by l.next_at limit 1) l order by u.rank limit 1) t;
  end if;
end $$;
