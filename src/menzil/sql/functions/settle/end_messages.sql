drop function if exists menzil._end_messages(bigint[], text, timestamptz, integer[], bigint[], timestamptz[], text[], text[], boolean);
-- Ends messages: out of the live tables, into the archive. The caller has already taken them out of ready, scheduled or
-- lease, so nobody else can reach them. With p_keep_key their ordering key stays blocked. Returns whether some of them
-- were on their way to an endpoint.
create or replace function menzil._end_messages(
  p_ids bigint[], p_status text, p_now timestamptz, p_channels integer[] default null,
  p_attempts bigint[] default null, p_leased_ats timestamptz[] default null, p_workers text[] default null, p_errors text[] default null,
  p_keep_key boolean default false, p_responses jsonb[] default null
) returns boolean
language plpgsql as $$
declare
  v_done record;
  v_channel integer[];
  v_name text[];
  v_sized boolean;
  v_pushed boolean;
  -- A batch usually shares one lease: then its columns are the same for all and need no look-up by message.
  v_same boolean := p_errors is null and p_responses is null and array_remove(p_attempts, p_attempts[1]) = '{}' and array_remove(p_leased_ats, p_leased_ats[1]) = '{}'
                and array_remove(p_workers, p_workers[1]) = '{}';
begin
  if cardinality(p_ids) > 1000 and not v_same then   -- the look-up by position is quadratic
    for v_from in 1 .. cardinality(p_ids) by 1000 loop
      v_pushed := menzil._end_messages(p_ids[v_from : v_from + 999], p_status, p_now, p_channels[v_from : v_from + 999], p_attempts[v_from : v_from + 999],
        p_leased_ats[v_from : v_from + 999], p_workers[v_from : v_from + 999], p_errors[v_from : v_from + 999], p_keep_key,
        p_responses[v_from : v_from + 999]) or v_pushed is true;
    end loop;
    return v_pushed;
  end if;
  if p_status <> 'completed' or (select s.archive_completed from menzil.setting_value s) then
    v_channel := coalesce(p_channels, array(select distinct m.channel_id from menzil.message m where m.id = any (p_ids)));
    select array_agg(c.id), array_agg(c.name) into v_channel, v_name from menzil.channel c where c.id = any (v_channel);
    perform menzil._archive_messages(p_ids, p_status, p_now, v_channel, v_name, p_attempts, p_leased_ats, p_workers, p_errors, v_same, p_responses);
  end if;
  with gone as (
    delete from menzil.message m where m.id = any (p_ids)
    returning m.id, m.channel_id, m.ordering_key, m.idempotency_key, m.payload_hash
  )
  select count(*)::integer as count, array_agg(g.channel_id) as channels,
         array_agg(g.id) filter (where g.ordering_key is not null) as key_ids,
         array_agg(g.channel_id) filter (where g.ordering_key is not null) as key_channels,
         array_agg(g.ordering_key) filter (where g.ordering_key is not null) as keys,
         array_agg(g.id) filter (where g.idempotency_key is not null) as used_ids,
         array_agg(g.channel_id) filter (where g.idempotency_key is not null) as used_channels,
         array_agg(g.idempotency_key) filter (where g.idempotency_key is not null) as used_keys,
         array_agg(g.payload_hash) filter (where g.idempotency_key is not null) as used_hashes
    into v_done from gone g;
  if v_done.count = 0 then
    return false;
  end if;
  -- Two settles at the same moment may lose some of this count; the depth is then guessed too high, never too low.
  perform setval('menzil.ended_count', nextval('menzil.ended_count') + v_done.count - 1);
  if v_done.keys is not null and not p_keep_key then
    perform menzil._free_keys(v_done.key_ids, v_done.key_channels, v_done.keys, p_now);
  end if;
  if v_done.used_keys is not null then
    perform menzil._keep_keys(v_done.used_ids, v_done.used_channels, v_done.used_keys, v_done.used_hashes, p_now);
  end if;
  select bool_or(c.max_size is not null), bool_or(c.protocol is not null) into v_sized, v_pushed
    from menzil.channel c where c.id = any (v_done.channels);
  if v_sized then
    perform menzil._shrink(v_done.channels);
  end if;
  return v_pushed;
end $$;

-- Keeps the idempotency keys of ended messages for the retention time.
create or replace function menzil._keep_keys(p_ids bigint[], p_channels integer[], p_keys text[], p_hashes text[], p_now timestamptz) returns void
language plpgsql as $$
declare
  v_retention integer := (select s.idempotency_retention from menzil.setting_value s);
begin
  insert into menzil.used_key (channel_id, idempotency_key, message_id, payload_hash, until_at)
    select u.channel_id, u.key, u.id, u.hash, p_now + v_retention * interval '1 s'
      from unnest(p_channels, p_keys, p_ids, p_hashes) u(channel_id, key, id, hash)
     where v_retention > 0 order by u.channel_id, u.key
    on conflict (channel_id, idempotency_key) do update
      set message_id = excluded.message_id, payload_hash = excluded.payload_hash, until_at = excluded.until_at;
end $$;

-- Size changes of channels with a limit; now and then the log is summed up.
create or replace function menzil._shrink(p_channels integer[]) returns void
language plpgsql as $$
begin
  insert into menzil.size_change (channel_id, change)
    select u.channel_id, - u.count from (select n.channel_id, count(*) from unnest(p_channels) n(channel_id) group by n.channel_id) u
      cross join lateral (select c.max_size from menzil.channel c where c.id = u.channel_id offset 0) c where c.max_size is not null;
  if random() < 0.03 then
    perform menzil._sum_up_size(u.channel_id) from (select distinct n.channel_id from unnest(p_channels) n(channel_id)) u;
  end if;
end $$;
