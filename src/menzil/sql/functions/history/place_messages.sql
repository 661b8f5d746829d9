-- Gives messages that were just inserted in bulk their places, as send_many does: on the schedule, behind their ordering
-- key, or among the ready ones; and tells the consumers. One that was given its ordering key already is ready at once.
-- Dead letters and replays may pay for the call; send_many, which every publish goes through, spells it out: called from
-- there, this makes the sending of a single message 6 to 10 % dearer.
create or replace function menzil._place_messages(p_ids bigint[], p_now timestamptz) returns void
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_generation smallint := menzil._generation(p_now);
begin
  with placed as materialized (
    select m.id, m.channel_id, m.rank, m.due_at, m.ordering_key, m.due_at > p_now as later,
           m.ordering_key is not null and (select 1 from menzil.key_queue k where k.channel_id = m.channel_id
             and k.ordering_key = m.ordering_key and k.place = 0 and k.id = m.id) is null as waits
      from menzil.message m where m.id = any (p_ids)
  ), into_scheduled as (
    insert into menzil.scheduled (due_at, id, channel_id, rank, ordering_key)
      select p.due_at, p.id, p.channel_id, p.rank, p.ordering_key from placed p where p.later
  ), into_keys as (
    insert into menzil.key_queue (channel_id, ordering_key, place, id)
      select p.channel_id, p.ordering_key, 1, p.id from placed p where not p.later and p.waits
  ), into_ready as (
    insert into menzil.ready (channel_id, rank, due_at, id, ordering_key)
      select p.channel_id, p.rank, p.due_at, p.id, p.ordering_key from placed p where not p.later and not p.waits
       order by p.channel_id, p.rank, p.due_at, p.id
  ), key_arrivals as (
    insert into menzil.arrival (generation, channel_id, ordering_key)
      select distinct v_generation, p.channel_id, p.ordering_key from placed p where not p.later and p.waits
  ), sizes as (
    insert into menzil.size_change (channel_id, change)
      select p.channel_id, p.count from (select q.channel_id, count(*) from placed q group by q.channel_id) p
        cross join lateral (select c.max_size from menzil.channel c where c.id = p.channel_id offset 0) c where c.max_size is not null
  )
  insert into menzil.arrival (generation, channel_ids, ranks, due_ats, ids, spans)
    select v_generation, array_agg(q.channel_id), array_agg(q.rank), array_agg(q.due_at), array_agg(q.id), array_agg(q.count > 1)
      from (select distinct on (p.channel_id, p.rank) p.channel_id, p.rank, p.due_at, p.id, count(*) over (partition by p.channel_id, p.rank)
              from placed p where not p.later and not p.waits
             order by p.channel_id, p.rank, p.due_at, p.id) q
    having count(*) > 0;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
end $$;
