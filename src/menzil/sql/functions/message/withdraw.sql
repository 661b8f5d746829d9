-- Takes waiting messages out of wherever they wait. Returns those it got: one that a consumer is just taking is too late.
create or replace function menzil._withdraw(p_ids bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_ids bigint[];
begin
  perform setval('menzil.withdrawn_at', menzil._microseconds(clock_timestamp()));
  with body as materialized (
    select m.id, m.channel_id, m.rank, m.due_at, m.ordering_key from unnest(p_ids) u(id)
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
  select array_agg(q.id) into v_ids from (select f.id from from_ready f union all select f.id from from_scheduled f union all select f.id from from_keys f) q;
  return coalesce(v_ids, '{}');
end $$;
