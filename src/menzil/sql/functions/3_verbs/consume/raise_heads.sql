-- Ordering keys that may need a head: where no message of the key may be leased, is leased or waits for a retry, its first
-- waiting message goes to its lane. The channel's gate is locked, so no other transaction raises heads of its keys.
-- Returns the heads whose lanes could be locked; the others are told of in the log.
create or replace function menzil._raise_heads(p_lines menzil.line[]) returns menzil.line[]
language plpgsql as $$
declare
  v_raised menzil.line[];
  v_keys bigint[];
begin
  if not exists (select 1 from unnest(p_lines) t where t.ordering_key is not null) then
    return null;
  end if;
  with key as materialized (
    select distinct t.channel_id, t.ordering_key from unnest(p_lines) t where t.ordering_key is not null
  ), head as materialized (
    select k.channel_id, k.ordering_key, h.at from key k cross join lateral (
      select q.ctid as at, q.waits from menzil.key_queue q where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key
       order by q.waits, q.id limit 1) h
     where h.waits = 1
  ), free as materialized (
    select q.ctid as at from menzil.key_queue q where q.ctid = any (array(select h.at from head h)) for update skip locked
  ), raised as (
    update menzil.key_queue q set waits = 0 where q.ctid = any (array(select f.at from free f)) returning q.id
  ), again as (   -- an open transaction is withdrawing the first message of the key
    insert into menzil.line (channel_id, ordering_key)
      select h.channel_id, h.ordering_key from head h where h.at not in (select f.at from free f)
  )
  select array_agg(row(pg_current_xact_id(), m.channel_id, 10 - m.priority, m.place_at, m.id, 1,
                       4 | case when m.expires_at is not null then 2 else 0 end | case when m.place_at <> m.created_at then 1 else 0 end,
                       null, null, null, null, null, null, null, null)::menzil.line)
    into v_raised
    from raised r cross join lateral (
      select m.id, m.channel_id, m.priority, m.expires_at, m.created_at,
             coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at) as place_at
        from menzil.message m where m.id = r.id offset 0) m;
  if v_raised is null then
    return null;
  end if;
  v_keys := menzil._lock_lanes(array(select distinct t.channel_id::bigint * 16 + t.rank from unnest(v_raised) t));
  insert into menzil.line (channel_id, rank, due_at, first_id, n, flags)
    select t.channel_id, t.rank, t.due_at, t.first_id, 1, t.flags from unnest(v_raised) t
     where t.channel_id::bigint * 16 + t.rank not in (select k.key from unnest(v_keys) k(key));
  return (select array_agg(row(t.*)::menzil.line) from unnest(v_raised) t
           where (t.channel_id::bigint * 16 + t.rank in (select k.key from unnest(v_keys) k(key))) is true);
end $$;
