-- Takes the keys for messages that are inserted next. Keys are taken in their order, so that two sends with the same keys
-- wait for each other and never deadlock. What is left then, a key that another send took meanwhile or one whose message
-- holds it no more, is settled one by one, as a single send does it.
create or replace function menzil._take_bulk_keys(p_bulk menzil.bulk) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk := p_bulk;
  v_keys text := p_bulk.staging || '_keys';
  v_id text := 'k.place + ($2::bigint[])[width_bucket(k.place, $1::bigint[])]';
  v_wanted bigint;
  v_taken bigint;
  v_row record;
  v_held bigint[] := '{}';
begin
  execute format('select count(*) from menzil.%I k where not k.repeat', v_keys) into v_wanted;
  execute format($sql$
    insert into menzil.key (channel_id, idempotency_key, message_id, payload_hash, created_at)
      select k.channel_id, k.idempotency_key, %s, k.hash, $3 from menzil.%I k where not k.repeat
       order by k.channel_id, k.idempotency_key
    on conflict do nothing$sql$, v_id, v_keys) using v_bulk.starts, v_bulk.shifts, v_bulk.now;
  get diagnostics v_taken = row_count;
  if v_taken < v_wanted then
    for v_row in execute format($sql$
      select k.place, %1$s as id, k.channel_id, k.idempotency_key, k.hash
        from menzil.%2$I k left join menzil.key h on h.channel_id = k.channel_id and h.idempotency_key = k.idempotency_key
       where not k.repeat and h.message_id is distinct from %1$s order by k.channel_id, k.idempotency_key$sql$, v_id, v_keys)
      using v_bulk.starts, v_bulk.shifts
    loop
      if menzil._take_key(v_row.channel_id, v_row.idempotency_key, v_row.id, v_row.hash, v_bulk.now) <> v_row.id then
        v_held := v_held || v_row.place;
      end if;
    end loop;
    -- At once: the table has no index, and there may be as many as there are rows.
    execute format('update menzil.%I k set repeat = true from unnest($1) h(place) where k.place = h.place', v_keys) using v_held;
  end if;
  execute format('select count(*) from menzil.%I k where k.repeat', v_keys) into v_bulk.repeats;
  return v_bulk;
end $$;
