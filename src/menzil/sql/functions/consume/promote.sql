-- Moves scheduled messages that are due to where they belong: behind their ordering key, or among the ready ones.
-- Looks only as far back as p_since; the regular sweep looks at everything.
create or replace function menzil._promote(p_now timestamptz, p_since timestamptz, p_limit integer) returns integer
language plpgsql as $$
declare
  v_generation smallint := menzil._generation(p_now);
  v_count integer;
begin
  with due as materialized (
    select s.ctid as at from menzil.scheduled s
     where s.due_at >= p_since and s.due_at <= p_now
     order by s.due_at, s.id limit p_limit for update skip locked
  ), moved as materialized (
    delete from menzil.scheduled s where s.ctid = any (array(select d.at from due d))
    returning s.due_at, s.id, s.channel_id, s.rank, s.attempts, s.expires_at, s.ordering_key, s.ordering_key is null or s.holds_key as goes
  ), into_ready as (
    insert into menzil.ready (channel_id, rank, due_at, id, attempts, expires_at, ordering_key)
      select m.channel_id, m.rank, m.due_at, m.id, m.attempts, m.expires_at, m.ordering_key from moved m where m.goes
  ), into_keys as (
    insert into menzil.key_queue (channel_id, ordering_key, place, id)
      select m.channel_id, m.ordering_key, 1, m.id from moved m where not m.goes
  ), arrivals as (
    insert into menzil.arrival (generation, channel_id, rank, due_at, id, ordering_key)
      select v_generation, m.channel_id, case when m.goes then m.rank end, case when m.goes then m.due_at end,
             case when m.goes then m.id end, case when not m.goes then m.ordering_key end
        from moved m
  )
  select count(*) into v_count from moved;
  return v_count;
end $$;
