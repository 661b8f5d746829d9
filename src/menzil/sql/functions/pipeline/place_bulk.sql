-- The places of a send's messages, computed from the staged rows again: cheaper than reading the bodies back. Then the
-- consumers are told, as send_many does.
create or replace function menzil._place_bulk(p_bulk menzil.bulk) returns void
language plpgsql as $$
declare
  v_places text := format($sql$
    select %s as id, %s as channel_id, (10 - coalesce(s.priority, 0))::smallint as rank, coalesce(s.scheduled_at, $5) as due_at, s.expires_at,
           s.ordering_key, coalesce(s.scheduled_at > $5, false) as later from %s$sql$, menzil._bulk_id(p_bulk),
    menzil._bulk_channel(p_bulk), menzil._bulk_rows(p_bulk));
begin
  execute format(case when p_bulk.special then menzil._place_all() else menzil._place_ready() end, v_places)
    using p_bulk.tokens, p_bulk.bases, p_bulk.starts, p_bulk.shifts, p_bulk.now, menzil._generation(clock_timestamp()), p_bulk.names,
      p_bulk.channels;
  insert into menzil.size_change (channel_id, change)
    select u.id, u.count from unnest(p_bulk.limited, menzil._bulk_coming(p_bulk)) u(id, count) where u.count > 0;
  if p_bulk.keyed then
    execute format('drop table menzil.%I', p_bulk.staging || '_keys');
  end if;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
end $$;

-- Nothing but ready messages, all due at the same moment.
create or replace function menzil._place_ready() returns text
language sql immutable
return $sql$
  with placed as (
    insert into menzil.ready (channel_id, rank, due_at, id, expires_at)
      select p.channel_id, p.rank, p.due_at, p.id, p.expires_at from (%s) p
    returning channel_id, rank, id
  )
  insert into menzil.arrival (generation, channel_ids, ranks, due_ats, ids, spans)
    select $6, array_agg(q.channel_id), array_agg(q.rank), array_agg($5), array_agg(q.id), array_agg(q.count > 1)
      from (select p.channel_id, p.rank, min(p.id) as id, count(*) from placed p group by p.channel_id, p.rank) q
    having count(*) > 0$sql$;

create or replace function menzil._place_all() returns text
language sql immutable
return $sql$
  with placed as materialized (%s), into_scheduled as (
    insert into menzil.scheduled (due_at, id, channel_id, rank, expires_at, ordering_key)
      select p.due_at, p.id, p.channel_id, p.rank, p.expires_at, p.ordering_key from placed p where p.later
  ), into_keys as (
    insert into menzil.key_queue (channel_id, ordering_key, place, id)
      select p.channel_id, p.ordering_key, 1, p.id from placed p where not p.later and p.ordering_key is not null
  ), into_ready as (
    insert into menzil.ready (channel_id, rank, due_at, id, expires_at)
      select p.channel_id, p.rank, p.due_at, p.id, p.expires_at from placed p where not p.later and p.ordering_key is null
  ), key_arrivals as (
    insert into menzil.arrival (generation, channel_id, ordering_key)
      select distinct $6, p.channel_id, p.ordering_key from placed p where not p.later and p.ordering_key is not null
  )
  insert into menzil.arrival (generation, channel_ids, ranks, due_ats, ids, spans)
    select $6, array_agg(q.channel_id), array_agg(q.rank), array_agg(q.due_at), array_agg(q.id), array_agg(q.count > 1)
      from (select distinct on (p.channel_id, p.rank) p.channel_id, p.rank, p.due_at, p.id, count(*) over (partition by p.channel_id, p.rank)
              from placed p where not p.later and p.ordering_key is null
             order by p.channel_id, p.rank, p.due_at, p.id) q
    having count(*) > 0$sql$;
