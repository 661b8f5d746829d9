-- What ended messages leave behind: a smaller queue, a free ordering key, an idempotency key kept for a while.
create or replace function menzil._after_end(
  p_ids bigint[], p_channels integer[], p_keys text[], p_idempotency_keys text[], p_hashes text[], p_stray boolean, p_now timestamptz
) returns void
language plpgsql as $$
declare
  v_retention integer;
begin
  -- Two settles at the same moment may lose some of this count; the depth is then guessed too high, never too low.
  perform setval('menzil.ended_count', nextval('menzil.ended_count') + cardinality(p_ids) - 1);
  if cardinality(array_remove(p_keys, null)) > 0 then
    perform menzil._free_keys(p_ids, p_channels, p_keys, p_now);
  end if;
  if cardinality(array_remove(p_idempotency_keys, null)) > 0 then
    select s.idempotency_retention into v_retention from menzil.setting_value s where s.idempotency_retention > 0;
    insert into menzil.used_key (channel_id, idempotency_key, message_id, payload_hash, until_at)
      select u.channel_id, u.key, u.id, u.hash, p_now + v_retention * interval '1 s'
        from unnest(p_channels, p_idempotency_keys, p_ids, p_hashes) u(channel_id, key, id, hash)
       where u.key is not null and v_retention > 0 order by u.channel_id, u.key
      on conflict (channel_id, idempotency_key) do update
        set message_id = excluded.message_id, payload_hash = excluded.payload_hash, until_at = excluded.until_at;
  end if;
  if exists (select 1 from menzil.channel c where c.id = any (p_channels) and c.max_size is not null) then
    perform menzil._shrink(p_channels);
  end if;
  if p_stray then
    perform menzil._rescue_strays();
  end if;
end $$;

-- Size changes of channels with a limit; now and then the log is summed up.
create or replace function menzil._shrink(p_channels integer[]) returns void
language plpgsql as $$
begin
  insert into menzil.size_change (channel_id, change)
    select u.channel_id, - count(*) from unnest(p_channels) u(channel_id) join menzil.channel c on c.id = u.channel_id
     where c.max_size is not null group by u.channel_id;
  if random() < 0.03 then
    perform menzil._sum_up_size(u.channel_id) from (select distinct n.channel_id from unnest(p_channels) n(channel_id)) u;
  end if;
end $$;
