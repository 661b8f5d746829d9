-- The bodies of a send, one insert for all. The casts read the JSON, once; the rules that need it read are checked on the
-- way, and any refusal undoes the whole.
create or replace function menzil._insert_bulk(p_bulk menzil.bulk) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk := p_bulk;
  v_inserted bigint;
begin
  if v_bulk.keyed then
    v_bulk := menzil._look_up_keys(v_bulk);
  end if;
  perform menzil._check_room(v_bulk.rows - v_bulk.repeats, v_bulk.max_queue_size);
  perform menzil._check_channel_room(c.id, c.name, u.count, c.max_size)
     from unnest(v_bulk.limited, menzil._bulk_coming(v_bulk)) u(id, count) join menzil.channel c on c.id = u.id where u.count > 0;
  v_bulk := menzil._reserve_ids(v_bulk);
  v_bulk.now := clock_timestamp();
  execute format($sql$
    insert into menzil.message (id, channel_id, rank, due_at, created_at, scheduled_at, expires_at, payload, content, ordering_key,
        idempotency_key, payload_hash, correlation_id, headers, metadata, replay_of)
      select q.id, q.channel_id, q.rank, coalesce(q.scheduled_at, $5), $5, q.scheduled_at, q.expires_at, q.payload, q.content, q.ordering_key,
             q.idempotency_key, %s, q.correlation_id, q.headers, q.metadata, q.replay_of
        from (select %s as id, %s as channel_id, (10 - coalesce(s.priority, 0))::smallint as rank, s.scheduled_at, s.expires_at,
                     s.payload::jsonb as payload, s.content, s.ordering_key, s.idempotency_key, s.correlation_id::uuid as correlation_id,
                     s.headers::jsonb as headers, s.metadata::jsonb as metadata, s.replay_of%s
                from %s offset 0) q
       where case when octet_length(q.payload::text) > $6 then menzil._refuse_row() else true end%s$sql$,
    case when v_bulk.keyed then 'q.hash' else 'null' end, menzil._bulk_id(v_bulk), menzil._bulk_channel(v_bulk),
    case when v_bulk.keyed then ', k.hash' else '' end, menzil._bulk_rows(v_bulk),
    case when v_bulk.described then $sql$
         and case when q.headers is null and q.metadata is null then true
                  else menzil._check_options(null, null, null, null, q.headers, q.metadata, $6)::text is distinct from '-' end $sql$ else '' end
    || case when v_bulk.keyed then $sql$
       order by q.channel_id, q.idempotency_key nulls first, q.id   -- two sends with the same keys wait for each other, they never deadlock
       on conflict (channel_id, idempotency_key) where idempotency_key is not null do nothing $sql$ else '' end)
    using v_bulk.tokens, v_bulk.bases, v_bulk.starts, v_bulk.shifts, v_bulk.now, v_bulk.max_payload_size, v_bulk.names,
      v_bulk.channels;
  get diagnostics v_inserted = row_count;
  if v_inserted <> v_bulk.rows and not v_bulk.keyed then
    raise exception 'bulk_commit: % of % rows were inserted', v_inserted, v_bulk.rows;
  elsif v_bulk.keyed then
    v_bulk := menzil._settle_bulk_keys(v_bulk, v_inserted);
  end if;
  return v_bulk;
end $$;

-- The rows of a send that are messages: s is a row, t its token, c its channel, k its idempotency key. Most sends go to one
-- channel, and then there is nothing to join.
create or replace function menzil._bulk_rows(p_bulk menzil.bulk) returns text
language plpgsql immutable as $$
begin
  return format('menzil.%I s join unnest($1, $2) t(token, base) on t.token = s.token', p_bulk.staging)
    || case when cardinality(p_bulk.channels) > 1 then ' join unnest($7::text[], $8::integer[]) c(name, id) on c.name = s.endpoint' else '' end
    || case when p_bulk.keyed then format(' left join menzil.%I k on k.place = t.base + s.n where k.repeat is not true', p_bulk.staging || '_keys') else '' end;
end $$;

create or replace function menzil._bulk_channel(p_bulk menzil.bulk) returns text
language sql immutable
return case when cardinality(p_bulk.channels) > 1 then 'c.id' else '($8::integer[])[1]' end;

-- The id of a row: its place, moved by as much as the ids of its run are.
create or replace function menzil._bulk_id(p_bulk menzil.bulk) returns text
language sql immutable
return 't.base + s.n + ($4::bigint[])' || case when cardinality(p_bulk.starts) > 1 then '[width_bucket(t.base + s.n, $3::bigint[])]' else '[1]' end;

-- One id per row. Others take ids at the same time, so they come in runs: few, and told by where each starts.
create or replace function menzil._reserve_ids(p_bulk menzil.bulk) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk := p_bulk;
begin
  select array_agg(r.start order by r.start), array_agg(r.shift order by r.start) into v_bulk.starts, v_bulk.shifts
    from (select min(i.place) as start, i.id - i.place as shift
            from (select g.place, nextval('menzil.message_id') as id from generate_series(1, v_bulk.rows) g(place) offset 0) i
           group by i.id - i.place) r;
  return v_bulk;
end $$;

-- Stops the insert; which row it was is found out afterwards.
create or replace function menzil._refuse_row() returns boolean
language plpgsql as $$
begin
  raise exception using errcode = '22023', message = 'A row cannot be sent.', hint = 'Correct it.';
end $$;
