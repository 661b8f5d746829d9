-- For each of these ordering keys: when none of its messages is ready, leased or waiting for a retry, its first waiting
-- one becomes ready. One advisory lock per key keeps two consumers from choosing two; nobody waits for it.
create or replace function menzil._raise_heads(
  p_now timestamptz, p_channel integer[], p_key text[], out channels integer[], out ranks smallint[], out dues timestamptz[], out ids bigint[]
)
language plpgsql as $$
declare
  v_mine boolean[];
begin
  v_mine := array(select pg_try_advisory_xact_lock(hashtextextended(u.key, u.channel_id))
                    from unnest(p_channel, p_key) with ordinality u(channel_id, key, n) order by u.n);
  -- A new statement: what was committed before the lock was had is visible now.
  with key as materialized (
    select u.channel_id, u.ordering_key, u.mine from unnest(p_channel, p_key, v_mine) u(channel_id, ordering_key, mine)
  ), head as materialized (
    select k.channel_id, k.ordering_key, h.at, h.place from key k cross join lateral (
      select q.ctid as at, q.place from menzil.key_queue q
       where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key
       order by q.place, q.id limit 1) h
     where k.mine and h.place = 1
  ), free as materialized (
    select q.ctid as at from menzil.key_queue q where q.ctid = any (array(select h.at from head h)) for update skip locked
  ), raised as materialized (
    update menzil.key_queue q set place = 0 where q.ctid = any (array(select f.at from free f)) returning q.id
  ), put_back as (
    -- Keys that another consumer has, and keys whose first message an open transaction is withdrawing.
    insert into menzil.arrival (generation, channel_id, ordering_key)
      select menzil._generation(p_now), k.channel_id, k.ordering_key from key k where not k.mine
      union all
      select menzil._generation(p_now), h.channel_id, h.ordering_key from head h where not exists (select 1 from free f where f.at = h.at)
  ), body as materialized (
    select m.id, m.channel_id, m.rank, m.due_at, m.attempts, m.expires_at, m.ordering_key from raised r
      cross join lateral (select m.* from menzil.message m where m.id = r.id offset 0) m
  ), into_ready as (
    insert into menzil.ready (channel_id, rank, due_at, id, attempts, expires_at, ordering_key)
      select b.channel_id, b.rank, b.due_at, b.id, b.attempts, b.expires_at, b.ordering_key from body b
  )
  select array_agg(b.channel_id), array_agg(b.rank), array_agg(b.due_at), array_agg(b.id) into channels, ranks, dues, ids from body b;
end $$;
