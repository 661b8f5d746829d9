-- Moves the position of a partition: back to take records once more, forward to pass them over, or into a stream that was made anew.
-- Null forgets the position, and the bridge begins as its config says; the row stays, because a partition without one is new to the
-- bridge. A process at work notices with its next batch.
create or replace function menzil.bridge_seek(p_name text, p_partition text, p_position text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_bridge menzil.bridge := menzil._bridge_for(p_name);
  v_known text[];
  v_topic text := case when v_bridge.protocol = 'kafka' then v_bridge.config ->> 'topic' end;
  v_old text;
begin
  perform menzil._refuse_null('The partition of a bridge') where p_partition is null;
  if v_bridge.protocol in ('amqp', 'mqtt') then
    perform menzil._refuse_value(format('A bridge from %s has no positions.', v_bridge.protocol), 'The server knows which messages were acknowledged.');
  elsif p_position !~ (case v_bridge.protocol when 'redis' then '^[0-9]{1,20}-[0-9]{1,20}(#[0-9]{1,19})?$'
                                           when 'nats' then '^[0-9]{1,19}(~[0-9]{1,19})?(#[0-9]{1,20})?$' else '^[0-9]{1,19}(#[0-9]{1,19}[.][0-9a-f]{16})?$' end) then
    perform menzil._refuse_value(format('%s is not a position of %s.', quote_literal(menzil._shown(p_position)), v_bridge.protocol),
      case v_bridge.protocol when 'redis' then 'Give the id of the last entry to pass over, such as 1526919030474-0.'
                             when 'nats' then 'Give the sequence of the last message to pass over, such as 41.' else 'Give the offset of the next record, such as 42.' end);
  end if;
  perform menzil._check_partition(p_partition, p_position);
  select p.position into v_old from menzil.bridge_position p where p.bridge_id = v_bridge.id and p.partition = p_partition;
  if not found then
    v_known := array(select p.partition from menzil.bridge_position p
                      where p.bridge_id = v_bridge.id and (v_topic is null or regexp_replace(p.partition, '/[0-9]+$', '') = v_topic) order by p.partition limit 100);
    if v_topic is not null and (regexp_replace(p_partition, '/[0-9]+$', '') <> v_topic or p_partition !~ '/(0|[1-9][0-9]{0,9})$') then
      perform menzil._refuse_value(format('%s is not a partition of the topic %s.', quote_literal(menzil._shown(p_partition)), quote_literal(v_topic)),
        format('Give the topic and a number, such as %s/0.', v_topic));
    elsif v_known = '{}' and v_topic is not null then   -- with latest the others would count as partitions that came later
      perform menzil._refuse_value(format('Bridge %s has not run yet, so its partitions are not known.', quote_literal(p_name)), 'Run it once with `menzil bridge run NAME --once`, then seek.');
    elsif v_known <> '{}' then
      raise exception using errcode = '42704', message = format('Bridge %s has no partition %s.', quote_literal(p_name), quote_literal(menzil._shown(p_partition))),
        hint = format('It has %s.', array_to_string(v_known, ', '));
    end if;
  end if;
  p_position := regexp_replace(p_position, '^0+(?=[0-9])', '');   -- 007 is 7: a process compares texts
  update menzil.bridge_position p set position = null, moved_at = clock_timestamp()
   where p.bridge_id = v_bridge.id and p.partition = p_partition and p_position is null;
  insert into menzil.bridge_position as p (bridge_id, partition, position) select v_bridge.id, p_partition, p_position where p_position is not null
    on conflict (bridge_id, partition) do update set position = excluded.position, moved_at = clock_timestamp();
  update menzil.bridge b set updated_at = clock_timestamp() where b.id = v_bridge.id;
  perform menzil._event('bridge.moved', 'bridge', p_name, to_jsonb(v_old), to_jsonb(p_position), jsonb_build_object('id', v_bridge.id, 'partition', p_partition));
end $$;
