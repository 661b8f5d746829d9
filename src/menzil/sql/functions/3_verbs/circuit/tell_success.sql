-- What settles tell about endpoints: only appended, folded by the next dequeue. One line per endpoint and call.
-- news: 1 success, 2 failure, 3 alive (it refused one message for good), 4 nothing learned (deferred or lost).

-- Successes are told while there is something to take back (a failure in the last minute, a circuit that is not closed)
-- and otherwise once a second, for people.
create or replace function menzil._tell_success(p_channel_id integer, p_count integer, p_leased_at timestamptz, p_now timestamptz) returns void
language plpgsql as $$
declare
  v_trouble boolean := menzil._register('menzil.failed_at') > menzil._microseconds(p_now) - 60000000;
begin
  insert into menzil.line (channel_id, due_at, news, news_count, news_at)
    select c.id, p_now, 1, p_count, p_leased_at from menzil.channel c
      cross join lateral (select g.circuit, g.failure_count, g.last_success_at from menzil.gate g where g.channel_id = c.id offset 0) g
     where c.id = p_channel_id and c.protocol is not null
       and (v_trouble or g.circuit > 0 or g.failure_count > 0 or (g.last_success_at > p_now - interval '1 s') is not true);
end $$;
