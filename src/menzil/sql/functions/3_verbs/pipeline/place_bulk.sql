-- The places of a send's messages, computed from the staged rows again: cheaper than reading the bodies back. Then the
-- consumers are told, as send_many does.
create or replace function menzil._place_bulk(p_bulk menzil.bulk) returns void
language plpgsql as $$
declare
  v_texts record := menzil._bulk_texts(p_bulk);
begin
  if p_bulk.rank is not null and cardinality(p_bulk.channels) = 1 and not p_bulk.special and p_bulk.repeats = 0 then
    -- All rows go to one lane and are due now: each run of ids is a line, and no row is looked at.
    insert into menzil.line (channel_id, rank, due_at, first_id, n)
      select p_bulk.channels[1], p_bulk.rank, p_bulk.now, u.start + u.shift, lead(u.start, 1, p_bulk.rows + 1) over (order by u.start) - u.start
        from unnest(p_bulk.starts, p_bulk.shifts) u(start, shift);
  else
    -- Several lanes: the ids of a lane have gaps, so a line has at most 512 of them. Special: some rows wait for their time or behind
    -- their ordering key, or expire.
    execute format(case when p_bulk.special then $sql$
      with placed as materialized (
        select %1$s as id, %2$s as channel_id, (10 - coalesce(s.priority, 0))::smallint as rank, coalesce(s.scheduled_at, $5) as due_at, s.expires_at,
               s.ordering_key, coalesce(s.scheduled_at > $5, false) as later,
               (case when s.scheduled_at is not null then 1 else 0 end | case when s.expires_at is not null then 2 else 0 end
                | case when s.ordering_key is not null then 4 else 0 end)::smallint as flags
          from %3$s
      ), into_scheduled as (
        insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key)
          select p.due_at, p.id, p.channel_id, p.rank, p.due_at, p.flags, p.ordering_key from placed p where p.later
      ), into_keys as (
        insert into menzil.key_queue (channel_id, ordering_key, waits, id)
          select p.channel_id, p.ordering_key, 1, p.id from placed p where not p.later and p.ordering_key is not null
      ), key_lines as (
        insert into menzil.line (channel_id, ordering_key)
          select distinct p.channel_id, p.ordering_key from placed p where not p.later and p.ordering_key is not null
      ), into_expiring as (
        insert into menzil.expiring (expires_at, id, created_at) select p.expires_at, p.id, $5 from placed p where p.expires_at is not null
      ), due as (
        select p.channel_id, p.rank, p.due_at, p.id, p.flags from placed p where not p.later and p.ordering_key is null
      )$sql$ else $sql$
      with due as (
        select %1$s as id, %2$s as channel_id, (10 - coalesce(s.priority, 0))::smallint as rank, $5 as due_at, 0::smallint as flags from %3$s
      )$sql$ end || $sql$
      insert into menzil.line (channel_id, rank, due_at, first_id, n, flags, ids)
        select q.channel_id, q.rank, q.due_at, min(q.id), count(*), bit_or(q.flags),
               case when max(q.id) - min(q.id) <> count(*) - 1 then array_agg(q.id order by q.id) end
          from (select d.channel_id, d.rank, d.due_at, d.id, d.flags,
                       (row_number() over (partition by d.channel_id, d.rank, d.due_at order by d.id) - 1) / 512 as part from due d) q
         group by q.channel_id, q.rank, q.due_at, q.part$sql$, v_texts.id, v_texts.channel, v_texts.rows)
      using p_bulk.tokens, p_bulk.bases, p_bulk.starts, p_bulk.shifts, p_bulk.now, p_bulk.max_payload_size, p_bulk.names, p_bulk.channels;
  end if;
  perform menzil._change_size(u.id, u.count) from unnest(p_bulk.limited, menzil._bulk_coming(p_bulk)) u(id, count) where u.count > 0;
  if p_bulk.keyed then
    execute format('drop table menzil.%I', p_bulk.staging || '_keys');
  end if;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
end $$;
