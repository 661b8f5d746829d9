-- Idempotency keys of a send, all at once: a key that is held with the same payload is a repeat, which counts and is not
-- created; with another payload the whole send is refused.

-- Before the insert: repeats need no room. The probes are pinned to their indexes: see menzil._take_key.
create or replace function menzil._look_up_keys(p_bulk menzil.bulk) returns menzil.bulk
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_bulk menzil.bulk := p_bulk;
  v_keys text := p_bulk.staging || '_keys';
  v_kept timestamptz := (select clock_timestamp() - s.idempotency_retention * interval '1 s' from menzil.setting_value s);
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
  if v_wrong is null then
    -- Marks the keys that a message holds now. The rule is that of menzil._holds_key, which takes several times as long for each key.
    execute format($sql$
      with met as materialized (
        select k.place, k.idempotency_key, coalesce(h.payload_hash <> k.hash, false) as wrong, h.message_id, h.created_at
          from menzil.%1$I k join menzil.key h on h.channel_id = k.channel_id and h.idempotency_key = k.idempotency_key
         where not k.repeat
      ), held as materialized (
        select m.place, m.idempotency_key, m.wrong
          from met m
          left join lateral (
            select d.status = 'completed' and d.ended_at > $1 as keeps from menzil.done d
             where d.lo_id > m.message_id - 4096 and d.lo_id <= m.message_id and d.hi_id >= m.message_id and (d.ids is null or m.message_id = any (d.ids))
             order by d.lo_id desc limit 1) e on true
         where coalesce(e.keeps, exists (select 1 from menzil.message b where b.id = m.message_id and b.created_at = m.created_at
                                          and ((b.expires_at <= clock_timestamp() - interval '1 s') is not true or menzil._lease_of(b.id) is not null)))
      ), marked as (
        update menzil.%1$I k set repeat = true from held h where k.place = h.place
      )
      select h.idempotency_key from held h where h.wrong limit 1$sql$, v_keys) into v_wrong using v_kept;
  end if;
  if v_wrong is not null then
    perform menzil._refuse_conflict(v_wrong);
  end if;
  execute format('select count(*) from menzil.%I k where k.repeat', v_keys) into v_bulk.repeats;
  return v_bulk;
end $$;
