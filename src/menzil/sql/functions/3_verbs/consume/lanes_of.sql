-- Lanes of these channels and this priority whose turn has come, in their newest versions, longest waiting first.
create or replace function menzil._lanes_of(p_only integer[], p_rank smallint, p_now timestamptz, p_width integer) returns tid[]
language plpgsql stable as $$
begin
  return array(select l.at from unnest(p_only) c(id)
    cross join lateral (select l.ctid as at, l.next_at from menzil.lane l where l.channel_id = c.id and l.rank = p_rank order by l.v desc limit 1) l
    where l.next_at <= p_now order by l.next_at limit p_width);
end $$;
