-- Every failed dead letter of an endpoint or channel, oldest message first; with p_cause only those of this cause, as
-- menzil.dlq_causes words it; at most p_limit. Returns how many.
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
  v_ids := array(select d.id from menzil.dead_letter d
                  where d.channel_id = v_channel.id and d.status = 'failed' and (p_cause is null or menzil._error_cause(d.last_error) = p_cause)
                    and not menzil._is_erased(d.original_message_id)
                  order by d.created_at, d.original_message_id limit p_limit for update skip locked);
  if v_ids <> '{}' then
    perform menzil._redrive(v_ids);
    perform menzil._event('redrive', case when v_channel.protocol is null then 'channel' else 'endpoint' end, p_name, null, null,
      jsonb_strip_nulls(jsonb_build_object('messages', cardinality(v_ids), 'cause', p_cause)));
  end if;
  return cardinality(v_ids);
end $$;
