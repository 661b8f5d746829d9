-- Takes waiting messages out of wherever they wait and returns those it got. One that a consumer is just leasing is left
-- alone; with p_wait, one that a consumer is just moving is waited for and sought where it went.
create or replace function menzil._withdraw(p_ids bigint[], p_wait boolean) returns bigint[]
language plpgsql as $$
declare
  v_rest bigint[] := p_ids;
  v_got bigint[];
  v_ids bigint[] := '{}';
begin
  for v_round in 1 .. case when p_wait then 5 else 1 end loop
    if p_wait then
      perform 1 from unnest(v_rest) u(id)
        cross join lateral (select m.* from menzil.message m where m.id = u.id offset 0) m
        cross join lateral (
          select 1 from (select 1 from menzil.scheduled s where s.due_at = m.due_at and s.id = m.id for update) b
          union all select 1 from (select 1 from menzil.key_queue k where k.channel_id = m.channel_id and k.ordering_key = m.ordering_key
                                      and k.place = 1 and k.id = m.id for update) c offset 0) w;
    end if;
    with body as materialized (
      select m.id, m.channel_id, m.rank, m.due_at, m.ordering_key from unnest(v_rest) u(id)
        cross join lateral (select m.* from menzil.message m where m.id = u.id offset 0) m
    ), in_ready as materialized (
      select r.at from body b cross join lateral (
        select r.ctid as at from menzil.ready r where r.channel_id = b.channel_id and r.rank = b.rank and r.due_at = b.due_at and r.id = b.id
           for update skip locked offset 0) r
    ), in_scheduled as materialized (
      select s.at from body b cross join lateral (
        select s.ctid as at from menzil.scheduled s where s.due_at = b.due_at and s.id = b.id for update skip locked offset 0) s
    ), in_keys as materialized (
      select k.at from body b cross join lateral (
        select k.ctid as at from menzil.key_queue k
         where k.channel_id = b.channel_id and k.ordering_key = b.ordering_key and k.place = 1 and k.id = b.id for update skip locked offset 0) k
       where b.ordering_key is not null
    ), from_ready as (
      delete from menzil.ready r where r.ctid = any (array(select i.at from in_ready i)) returning r.id
    ), from_scheduled as (
      delete from menzil.scheduled s where s.ctid = any (array(select i.at from in_scheduled i)) returning s.id
    ), from_keys as (
      delete from menzil.key_queue k where k.ctid = any (array(select i.at from in_keys i)) returning k.id
    )
    select array_agg(q.id) into v_got
      from (select f.id from from_ready f union all select f.id from from_scheduled f union all select f.id from from_keys f) q;
    v_ids := v_ids || v_got;
    -- Still alive, not in flight, and not got: it was moving. Look where it is now.
    v_rest := array(select m.id from (select u.id from unnest(v_rest) u(id) except select g.id from unnest(v_got) g(id)) u
                     cross join lateral (select m.id from menzil.message m where m.id = u.id offset 0) m
                     where (select 1 from menzil.lease l where l.id = m.id) is null);
    exit when v_rest = '{}';
  end loop;
  return v_ids;
end $$;

-- Consumers must not wait for a transaction that withdraws messages, however long it stays open: they are told to look out.
create or replace function menzil._tell_withdrawal() returns void
language plpgsql as $$
begin
  perform setval('menzil.withdrawn_at', menzil._microseconds(clock_timestamp()));
end $$;
