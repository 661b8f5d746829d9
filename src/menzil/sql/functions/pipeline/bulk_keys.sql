-- Idempotency keys of a send, all at once: a key that is held with the same payload is a repeat, which counts and is not
-- created; with another payload the whole send is refused.

-- Before the insert: repeats need no room.
create or replace function menzil._look_up_keys(p_bulk menzil.bulk) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk := p_bulk;
  v_keys text := p_bulk.staging || '_keys';
  v_wrong text;
begin
  execute format($sql$
    create unlogged table menzil.%I with (autovacuum_enabled = off) as
      select q.*, row_number() over (partition by q.channel_id, q.idempotency_key order by q.place) > 1 as repeat
        from (select t.base + s.n as place, c.id as channel_id, s.idempotency_key, menzil._payload_hash(s.payload::jsonb, s.content) as hash
                from menzil.%I s join unnest($1, $2) t(token, base) on t.token = s.token join unnest($3, $4) c(name, id) on c.name = s.endpoint
               where s.idempotency_key is not null offset 0) q$sql$, v_keys, v_bulk.staging)
    using v_bulk.tokens, v_bulk.bases, v_bulk.names, v_bulk.channels;
  execute format('analyze menzil.%I', v_keys);
  execute format('select k.idempotency_key from menzil.%I k group by k.channel_id, k.idempotency_key having min(k.hash) <> max(k.hash) limit 1', v_keys)
    into v_wrong;
  if v_wrong is not null then
    perform menzil._refuse_conflict(v_wrong);
  end if;
  perform menzil._mark_repeats(v_keys);
  execute format('select count(*) from menzil.%I k where k.repeat', v_keys) into v_bulk.repeats;
  return v_bulk;
end $$;

-- How many messages come to each channel that has a max_size.
create or replace function menzil._bulk_coming(p_bulk menzil.bulk) returns bigint[]
language plpgsql as $$
declare
  v_coming bigint[] := p_bulk.coming;
begin
  if p_bulk.keyed then
    execute format($sql$
      select array_agg(u.count - (select count(*) from menzil.%I k where k.repeat and k.channel_id = u.id) order by u.i)
        from unnest($1, $2) with ordinality u(id, count, i)$sql$, p_bulk.staging || '_keys')
      into v_coming using p_bulk.limited, p_bulk.coming;
  end if;
  return v_coming;
end $$;

-- Marks the keys that a message holds, live or ended.
create or replace function menzil._mark_repeats(p_keys text) returns void
language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_holders text;
  v_source text;
  v_wrong text;
begin
  foreach v_holders in array array[
    'menzil.message m where m.channel_id = k.channel_id and m.idempotency_key = k.idempotency_key',
    'menzil.used_key m where m.channel_id = k.channel_id and m.idempotency_key = k.idempotency_key and m.until_at > $1'
  ] loop
    v_source := split_part(v_holders, ' where ', 1);
    execute format('select k.idempotency_key from menzil.%I k, %s where not k.repeat and m.payload_hash is distinct from k.hash and %s limit 1',
      p_keys, v_source, split_part(v_holders, ' where ', 2)) into v_wrong using v_now;
    if v_wrong is not null then
      perform menzil._refuse_conflict(v_wrong);
    end if;
    execute format('update menzil.%I k set repeat = true from %s where not k.repeat and %s', p_keys, v_source, split_part(v_holders, ' where ', 2))
      using v_now;
  end loop;
end $$;

-- After the insert: keys that others took, or used up, since they were looked up.
create or replace function menzil._settle_bulk_keys(p_bulk menzil.bulk, p_inserted bigint) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk := p_bulk;
  v_keys text := p_bulk.staging || '_keys';
  v_row record;
begin
  if p_inserted < v_bulk.rows - v_bulk.repeats then
    for v_row in execute format($sql$
      select k.place, k.channel_id, k.idempotency_key, k.hash from menzil.%I k where not k.repeat
         and not exists (select 1 from menzil.message m where m.id = k.place + ($2::bigint[])[width_bucket(k.place, $1::bigint[])])$sql$, v_keys)
      using v_bulk.starts, v_bulk.shifts
    loop
      if menzil._holder_of_key(v_row.channel_id, v_row.idempotency_key, v_row.hash) is null then
        raise exception using errcode = '40001', message = format('The message with idempotency key %s ended while it was looked at.',
          quote_literal(menzil._shown(v_row.idempotency_key))), hint = 'Try again.';
      end if;
      execute format('update menzil.%I k set repeat = true where k.place = $1', v_keys) using v_row.place;
    end loop;
  end if;
  for v_row in execute format($sql$
    select k.place, k.idempotency_key, k.hash, u.payload_hash, k.place + ($2::bigint[])[width_bucket(k.place, $1::bigint[])] as id
      from menzil.%I k join menzil.used_key u on u.channel_id = k.channel_id and u.idempotency_key = k.idempotency_key
     where not k.repeat and u.until_at > clock_timestamp()$sql$, v_keys)
    using v_bulk.starts, v_bulk.shifts
  loop
    if v_row.payload_hash is distinct from v_row.hash then
      perform menzil._refuse_conflict(v_row.idempotency_key);
    end if;
    delete from menzil.message m where m.id = v_row.id;
    execute format('update menzil.%I k set repeat = true where k.place = $1', v_keys) using v_row.place;
  end loop;
  execute format('select count(*) from menzil.%I k where k.repeat', v_keys) into v_bulk.repeats;
  return v_bulk;
end $$;
