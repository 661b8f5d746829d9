-- Where a message is now, live or ended. STABLE: its statements read with one snapshot, so a message that ends meanwhile is
-- not taken for one that waits. It looks into the partition of the current month first: every further partition costs some
-- microseconds, also one that does not hold the message. Most messages ended in the first try: there is nothing more to look for.
select menzil._make_hot('message_status', replace(replace($hot$
create or replace function menzil.message_status(p_id bigint) returns table (
  id bigint, status text, channel text, num_attempts bigint, retry_count integer, last_error text, created_at timestamptz, scheduled_at timestamptz,
  next_retry_at timestamptz, unlock_at timestamptz, expires_at timestamptz, ended_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_variable
begin
  -- The parent is locked before its partition, as ALTER TABLE does it: the second look may follow.
  {look into} (select 1) one left join menzil.message never on false cross join {body} {for it}
  if not found then
    {look into} menzil.message {for it}
  end if;
  if not found then
    perform menzil._check_known(p_id);
  end if;
  id := p_id;
  retry_count := 0;
  if status is distinct from 'completed' or num_attempts <> 1 then
    select coalesce(status, case when l.attempt is null then 'pending' else 'processing' end), coalesce(num_attempts, l.attempt, r.attempts, 0),
           coalesce(r.retry_count, 0), r.last_error, case when status is null and l.attempt is null then r.due_at end, l.unlock_at
      into status, num_attempts, retry_count, last_error, next_retry_at, unlock_at
      from (select 1) one
      left join lateral (select l.attempt, l.unlock_at from menzil.lease l
                          where status is null and l.lo_id <= p_id and l.hi_id >= p_id and (l.ids is null or p_id = any (l.ids)) order by l.lo_id desc limit 1) l on true
      left join menzil.returned r on r.id = p_id;
  end if;
  return next;
end $$$hot$,
  '{look into}', $$select c.name, m.created_at, m.scheduled_at, m.expires_at, d.status, d.attempt, d.ended_at
    into channel, created_at, scheduled_at, expires_at, status, num_attempts, ended_at from$$),
  '{for it}', $$m
    join menzil.channel c on c.id = m.channel_id
    left join lateral (select d.status, d.attempt, d.ended_at from menzil.done d
                        where d.lo_id > p_id - 4096 and d.lo_id <= p_id and d.hi_id >= p_id and (d.ids is null or p_id = any (d.ids))
                        order by d.lo_id desc limit 1) d on true
   where m.id = p_id limit 1;$$));
