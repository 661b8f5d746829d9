-- The next priority from p_from on that has a lane whose turn has come. p_only are the channels to serve, or with p_push the
-- endpoints to leave out.
create or replace function menzil._next_rank(p_from smallint, p_now timestamptz, p_floor timestamptz, p_only integer[], p_push boolean) returns smallint
language plpgsql stable as $$
begin
  if p_only is not null and not p_push then
    return (select min(k.rank) from unnest(p_only) c(id)
              cross join lateral (select k.rank from menzil.lane_name k where k.channel_id = c.id and k.rank >= p_from offset 0) k
              cross join lateral (select l.next_at from menzil.lane l where l.channel_id = c.id and l.rank = k.rank order by l.v desc limit 1) l
             where l.next_at <= p_now);
  elsif p_push then
    return (select u.rank from menzil.rank_used u where u.rank >= p_from
               and exists (select 1 from menzil.lane l where l.push and l.rank = u.rank and l.next_at >= p_floor and l.next_at <= p_now
                             and (p_only is null or l.channel_id <> all (p_only))) order by u.rank limit 1);
  end if;
  return (select u.rank from menzil.rank_used u where u.rank >= p_from
             and exists (select 1 from menzil.lane l where l.rank = u.rank and l.next_at >= p_floor and l.next_at <= p_now) order by u.rank limit 1);
end $$;
