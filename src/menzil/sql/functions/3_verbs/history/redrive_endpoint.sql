-- Every failed dead letter of an endpoint or channel, oldest message first; with p_cause only those of this cause, as
-- menzil.dlq_causes words it or by its cause_hash; at most p_limit. Returns how many.
create or replace function menzil.redrive_endpoint(p_name text, p_cause text default null, p_limit integer default null) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_channel menzil.channel;
  v_ids bigint[];
begin
  -- The one that is there, or the last that was.
  select c.* into v_channel from menzil.channel c where c.name = p_name order by c.dropped_at desc nulls first limit 1;
  perform menzil._refuse_unknown(p_name) where not found;
  perform menzil._check_open(v_channel);
  if p_limit < 1 then
    perform menzil._refuse_value(format('A limit of %s is out of range, it must be 1 or more.', p_limit), 'Leave the limit out to redrive all.');
  end if;
  -- SKIP LOCKED: leave rows that another transaction is redriving.
  if p_cause is null then
    -- Sorted first, from the index of causes: else the message of every letter of the channel is asked before the limit counts.
    v_ids := array(select l.id
                     from (select d.id from menzil.dead_letter d where d.channel_id = v_channel.id and d.status = 'failed'
                            order by d.created_at, d.original_message_id offset 0) o
                     cross join lateral (select d.id from menzil.dead_letter d where d.id = o.id and d.status = 'failed' and not menzil._is_erased(d.original_message_id)
                                            for update skip locked offset 0) l
                    limit p_limit);
  else
    v_ids := menzil._lock_letters(v_channel.id, p_cause, p_limit);
  end if;
  if v_ids <> '{}' then
    perform menzil._redrive(v_ids);
    perform menzil._event('redrive', case when v_channel.protocol is null then 'channel' else 'endpoint' end, p_name, null, null,
      jsonb_strip_nulls(jsonb_build_object('messages', cardinality(v_ids), 'cause', p_cause)));
  end if;
  return cardinality(v_ids);
end $$;

-- Locks failed dead letters of one channel and cause, oldest message first, and no more than p_limit: others pass over what is locked. A
-- cause has a name for each of its classes. Letters that the job causes has not come to have no name yet: they are looked at one by one.
create or replace function menzil._lock_letters(p_channel_id integer, p_cause text, p_limit integer) returns bigint[]
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_names text[] := array[menzil._cause_hash('RETRYABLE', p_cause), menzil._cause_hash('PERMANENT', p_cause), menzil._cause_hash('DISABLE', p_cause), p_cause];
begin
  return array(
    select l.id
      from (select d.id, d.created_at, d.original_message_id from menzil.dead_letter d
             where d.channel_id = p_channel_id and d.status = 'failed' and d.cause_hash = any (v_names)
            union all
            select d.id, d.created_at, d.original_message_id from menzil.dead_letter d
             where d.channel_id = p_channel_id and d.status = 'failed' and d.cause_hash is null
               and (select p_cause in (e.cause, e.cause_hash) from menzil._cause_of(d.last_error) e)
             order by created_at, original_message_id offset 0) o
      cross join lateral (select d.id from menzil.dead_letter d where d.id = o.id and d.status = 'failed' and not menzil._is_erased(d.original_message_id)
                             for update skip locked offset 0) l
     limit p_limit);
end $$;
