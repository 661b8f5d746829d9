-- Lanes that wait for their gate, without or with a time, get a turn now.
create or replace function menzil._release_lanes(p_channel_id integer, p_now timestamptz) returns void
language sql as $$
  update menzil.lane l set next_at = p_now, v = l.v + 1 where l.channel_id = p_channel_id and l.tail_due is not null and (l.next_at > p_now) is not false
$$;
