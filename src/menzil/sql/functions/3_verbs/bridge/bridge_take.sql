-- Takes records of one partition in one transaction: each becomes a message or a dead letter, and the position moves from p_begin to
-- p_end. If it is not at p_begin any more, another process took these records: MZ004, and nothing is written. A source without positions
-- gives NULL for both; then idempotency keys keep repeats away.
-- Parallel arrays, one element per record: p_texts has the bodies that must be JSON, p_contents those that are bytes. p_faults says why a
-- record cannot be a message, where the process knows it already; its raw body is then in p_contents. p_lost: records that the source
-- removed before p_begin was read.
create or replace function menzil.bridge_take(
  p_name text, p_partition text, p_begin text, p_end text,
  p_texts text[], p_contents bytea[] default null, p_faults text[] default null, p_ordering_keys text[] default null,
  p_idempotency_keys text[] default null, p_correlation_ids uuid[] default null, p_headers text[] default null, p_metadatas text[] default null,
  p_lost bigint default 0, p_worker text default null, out taken integer, out refused integer
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_count integer := cardinality(p_texts);
  v_bridge menzil.bridge;
  v_records menzil.incoming[];
  v_good menzil.incoming[];
  v_bad menzil.incoming[];
begin
  if p_name is null or p_partition is null or p_texts is null then
    perform menzil._refuse_null('The name and the partition of a bridge, and an array of texts');
  elsif exists (select 1 from unnest(array[cardinality(p_contents), cardinality(p_faults), cardinality(p_ordering_keys), cardinality(p_idempotency_keys),
          cardinality(p_correlation_ids), cardinality(p_headers), cardinality(p_metadatas)]) u(n) where u.n <> v_count) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give each array one element per record, or NULL for none.');
  elsif greatest(array_ndims(p_texts), array_ndims(p_contents), array_ndims(p_faults), array_ndims(p_ordering_keys), array_ndims(p_idempotency_keys),
                 array_ndims(p_correlation_ids), array_ndims(p_headers), array_ndims(p_metadatas)) > 1 then
    perform menzil._refuse_shape();
  elsif (p_begin is null) <> (p_end is null) then
    perform menzil._refuse_value('A batch begins and ends at a position, or does neither.', 'Give NULL for both where the source has no positions.');
  elsif p_lost is null or p_lost not between 0 and 1000000000000000 then
    perform menzil._refuse_value('The count of lost records is zero or more.', 'Leave it out if the source has all of them.');
  end if;
  perform menzil._refuse_copy();
  select b.* into v_bridge from menzil.bridge b where b.name = p_name;
  if v_bridge.id is null then
    perform menzil._refuse_unknown_bridge(p_name);
  elsif v_bridge.paused then
    raise exception using errcode = '55000', message = format('Bridge %s is paused.', quote_literal(p_name)), hint = 'Run `menzil bridge resume NAME`.';
  end if;
  perform menzil._move_position(v_bridge, p_partition, p_begin, p_end, p_lost);
  v_records := menzil._read_records(v_bridge, p_texts, p_contents, p_faults, p_ordering_keys, p_idempotency_keys, p_correlation_ids, p_headers, p_metadatas);
  v_good := array(select r from unnest(v_records) r where r.fault is null);
  v_bad := array(select r from unnest(v_records) r where r.fault is not null);
  taken := cardinality(v_good);
  refused := cardinality(v_bad);
  perform menzil._refuse_records(v_bridge, v_bad, p_worker);
  if v_bridge.event_type is null then
    perform menzil._send_records(v_bridge.channel, v_good);
  else
    perform menzil._publish_records(v_bridge.event_type, v_good);
  end if;
  update menzil.bridge_position p set taken = p.taken + bridge_take.taken, refused = p.refused + bridge_take.refused
   where p.bridge_id = v_bridge.id and p.partition = p_partition;
end $$;

-- Moves the position, first of all: a second process waits here for the first, and then finds another position.
create or replace function menzil._move_position(p_bridge menzil.bridge, p_partition text, p_begin text, p_end text, p_lost bigint) returns void
language plpgsql as $$
declare
  v_now text;
begin
  perform menzil._check_partition(p_partition, p_end);
  if p_begin is null then
    insert into menzil.bridge_position (bridge_id, partition, position) values (p_bridge.id, p_partition, null) on conflict do nothing;
  end if;
  update menzil.bridge_position p set position = p_end, lost = p.lost + p_lost, moved_at = clock_timestamp()
   where p.bridge_id = p_bridge.id and p.partition = p_partition and p.position is not distinct from p_begin;
  if not found then
    select p.position into v_now from menzil.bridge_position p where p.bridge_id = p_bridge.id and p.partition = p_partition;
    raise exception using errcode = 'MZ004',
      message = format('Partition %s of bridge %s stands at %s, not at %s: another process took these records.', quote_literal(p_partition), quote_literal(p_bridge.name),
                       coalesce(v_now, 'no position'), coalesce(p_begin, 'no position')),
      hint = 'Nothing was taken. Read on from the position that is stored.';
  elsif p_lost > 0 then
    perform menzil._event('bridge.gap', 'bridge', p_bridge.name, null, null,
      jsonb_build_object('id', p_bridge.id, 'partition', p_partition, 'position', p_begin, 'lost', p_lost));
  end if;
end $$;
