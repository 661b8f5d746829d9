-- The bodies of a send, one insert for all. The casts read the JSON, once; the rules that need it read are checked on the
-- way, and any refusal undoes the whole: which row it was is found out afterwards.
create or replace function menzil._insert_bulk(p_bulk menzil.bulk) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk := p_bulk;
  v_inserted bigint;
  v_table text;
  v_texts record;
begin
  if v_bulk.keyed then
    v_bulk := menzil._look_up_keys(v_bulk);
  end if;
  perform menzil._check_room(v_bulk.rows - v_bulk.repeats, v_bulk.max_queue_size);
  perform menzil._check_channel_room(c.id, c.name, u.count, c.max_size)
     from unnest(v_bulk.limited, menzil._bulk_coming(v_bulk)) u(id, count) join menzil.channel c on c.id = u.id where u.count > 0;
  -- One id per row. Other sends take ids at the same time, so they come in runs: few, and told by where each starts.
  select array_agg(r.start order by r.start), array_agg(r.shift order by r.start) into v_bulk.starts, v_bulk.shifts
    from (select min(i.place) as start, i.id - i.place as shift
            from (select g.place, nextval('menzil.message_id') as id from generate_series(1, v_bulk.rows) g(place) offset 0) i
           group by i.id - i.place) r;
  v_bulk.now := clock_timestamp();
  -- The partition itself, where there is one: that spares the search for it in each row.
  v_table := 'archive_' || to_char(v_bulk.now at time zone 'UTC', 'YYYY_MM');
  v_table := case when to_regclass('menzil.' || v_table) is null then 'message' else v_table end;
  if v_bulk.keyed then
    v_bulk := menzil._take_bulk_keys(v_bulk);
  end if;
  v_texts := menzil._bulk_texts(v_bulk);
  execute format($sql$
    with parent as (select from only menzil.message)   -- the parent is locked before its partition: see send
    insert into menzil.%I (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, content, ordering_key,
        idempotency_key, payload_hash, correlation_id, headers, metadata, replay_of)
      select q.id, q.channel_id, q.priority, $5, q.scheduled_at, q.expires_at, q.payload, q.content, q.ordering_key,
             q.idempotency_key, %s, q.correlation_id, q.headers, q.metadata, q.replay_of
        from (select %s as id, %s as channel_id, coalesce(s.priority, 0)::smallint as priority, s.scheduled_at, s.expires_at,
                     s.payload::jsonb as payload, s.content, s.ordering_key, s.idempotency_key, s.correlation_id::uuid as correlation_id,
                     s.headers::jsonb as headers, s.metadata::jsonb as metadata, s.replay_of%s
                from %s offset 0) q
       where case when octet_length(q.payload::text) > $6 then menzil._refuse_size(octet_length(q.payload::text), $6)::text is null else true end%s$sql$,
    v_table, case when v_bulk.keyed then 'q.hash' else 'null' end, v_texts.id, v_texts.channel,
    case when v_bulk.keyed then ', k.hash' else '' end, v_texts.rows,
    case when v_bulk.described then $sql$
         and case when q.headers is null and q.metadata is null then true
                  else menzil._check_options(null, null, null, null, q.headers, q.metadata, $6)::text is distinct from '-' end $sql$ else '' end)
    using v_bulk.tokens, v_bulk.bases, v_bulk.starts, v_bulk.shifts, v_bulk.now, v_bulk.max_payload_size, v_bulk.names,
      v_bulk.channels;
  get diagnostics v_inserted = row_count;
  if v_inserted <> v_bulk.rows - v_bulk.repeats then
    raise exception 'bulk_commit: % of % rows were inserted', v_inserted, v_bulk.rows - v_bulk.repeats;
  end if;
  if v_bulk.replays then   -- the time of creation leaves out others' messages among these ids
    insert into menzil.lineage (message_id, parent_id)
      select m.id, m.replay_of from menzil.message m
       where m.id >= v_bulk.starts[1] + v_bulk.shifts[1] and m.id <= v_bulk.rows + v_bulk.shifts[cardinality(v_bulk.shifts)]
         and m.created_at = v_bulk.now and m.replay_of is not null;
  end if;
  return v_bulk;
end $$;
