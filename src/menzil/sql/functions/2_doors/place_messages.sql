-- Puts messages that were just inserted where they belong: on the schedule, behind their ordering key, or into the log, one
-- line per lane and time. p_heads: messages that hold their ordering key already, also while they wait on the schedule.
create or replace function menzil._place_messages(p_sent menzil.sent[], p_now timestamptz, p_heads bigint[] default null) returns void
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_lane record;
begin
  if exists (select 1 from unnest(p_sent) s where s.expires_at is not null or s.ordering_key is not null or s.scheduled_at > p_now) then
    insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key, holds_key)
      select s.scheduled_at, s.id, s.channel_id, s.rank, s.scheduled_at, menzil._flags_of(s), s.ordering_key, (s.id = any (p_heads)) is true
        from unnest(p_sent) s where s.scheduled_at > p_now;
    insert into menzil.key_queue (channel_id, ordering_key, waits, id)
      select s.channel_id, s.ordering_key, 1, s.id from unnest(p_sent) s
       where (s.scheduled_at > p_now) is not true and s.ordering_key is not null and (s.id = any (p_heads)) is not true;
    insert into menzil.line (channel_id, ordering_key)
      select distinct s.channel_id, s.ordering_key from unnest(p_sent) s
       where (s.scheduled_at > p_now) is not true and s.ordering_key is not null and (s.id = any (p_heads)) is not true;
    insert into menzil.expiring (expires_at, id, created_at) select s.expires_at, s.id, p_now from unnest(p_sent) s where s.expires_at is not null;
  end if;
  for v_lane in
    select s.channel_id, s.rank, coalesce(s.scheduled_at, p_now) as due_at, array_agg(s.id order by s.id) as ids, bit_or(menzil._flags_of(s)) as flags
      from unnest(p_sent) s
     where (s.scheduled_at > p_now) is not true and (s.ordering_key is null or s.id = any (p_heads)) group by 1, 2, 3
  loop
    perform menzil._tell(v_lane.channel_id, v_lane.rank, v_lane.due_at, v_lane.ids, v_lane.flags);
  end loop;
  for v_lane in
    select s.channel_id, count(*) as n from unnest(p_sent) s
      cross join lateral (select 1 from menzil.channel c where c.id = s.channel_id and c.max_size is not null offset 0) c group by 1
  loop
    perform menzil._change_size(v_lane.channel_id, v_lane.n);
  end loop;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
end $$;

-- 1 not plain: it is due at another time than it was created at; 2 expires; 4 has an ordering key.
create or replace function menzil._flags_of(p_sent menzil.sent) returns smallint
language sql immutable
return (case when p_sent.scheduled_at is not null then 1 else 0 end | case when p_sent.expires_at is not null then 2 else 0 end
      | case when p_sent.ordering_key is not null then 4 else 0 end)::smallint;
