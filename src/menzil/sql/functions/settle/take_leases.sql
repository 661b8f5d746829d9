-- Takes back the leases that these tokens still hold. The index visits ids in order, so two settles never deadlock;
-- a bitmap would visit them as they lie in the table, so callers switch it off.
create or replace function menzil._take_leases(
  p_ids bigint[], p_attempts bigint[],
  out ids bigint[], out attempts bigint[], out channels integer[], out leased_ats timestamptz[], out workers text[], out keys text[], out epochs integer[]
)
language plpgsql as $$
begin
  with gone as (
    delete from menzil.lease l
     where l.id = any (p_ids)
       and ((l.id, l.attempt) in (select u.id, u.attempt from unnest(p_ids, p_attempts) u(id, attempt))) is true
    returning l.id, l.attempt, l.channel_id, l.leased_at, l.worker, l.ordering_key, l.epoch
  )
  select array_agg(g.id), array_agg(g.attempt), array_agg(g.channel_id), array_agg(g.leased_at), array_agg(g.worker), array_agg(g.ordering_key),
         array_agg(g.epoch)
    into ids, attempts, channels, leased_ats, workers, keys, epochs from gone g;
end $$;

-- One row per distinct id asked for: what the settle did, or why it did nothing.
-- stale: the token was overtaken, the message lives on; unknown: the message is not in flight.
create or replace function menzil._outcomes(p_ids bigint[], p_attempts bigint[], p_settled bigint[], p_outcome text)
returns table (id bigint, outcome text)
language plpgsql as $$
begin
  if cardinality(p_settled) = cardinality(p_ids) then
    return query select u.id, p_outcome from unnest(p_ids) u(id);
    return;
  end if;
  return query
    select u.id,
           case when u.id = any (p_settled) then p_outcome
                when exists (select 1 from menzil.lease l where l.id = u.id)
                  or exists (select 1 from menzil.message m where m.id = u.id and u.attempt between 1 and m.attempts) then 'stale'
                else 'unknown' end
      from (select distinct on (w.id) w.id, w.attempt from unnest(p_ids, p_attempts) w(id, attempt) where w.id is not null order by w.id) u;
end $$;

-- The scalar settles raise what the array forms report.
create or replace function menzil._raise_outcome(p_id bigint, p_attempt bigint, p_outcome text) returns void
language plpgsql as $$
begin
  if p_outcome = 'stale' then
    raise exception using errcode = 'MZ001', message = format('The lease of message %s, attempt %s, is stale.', p_id, p_attempt),
      hint = 'It expired and the message went on without you; drop this result.';
  elsif p_outcome = 'unknown' or p_outcome is null then
    raise exception using errcode = 'MZ002', message = format('Message %s is not in flight.', coalesce(p_id::text, 'NULL')),
      hint = 'It has ended, waits, or never was; look with menzil.message_status(id).';
  end if;
end $$;

create or replace function menzil._check_tokens(p_ids bigint[], p_attempts bigint[]) returns void
language plpgsql as $$
begin
  if array_ndims(p_ids) > 1 or array_ndims(p_attempts) > 1 then
    perform menzil._refuse_shape();
  elsif p_ids is null or p_attempts is null or array_position(p_ids, null) is not null or array_position(p_attempts, null) is not null then
    perform menzil._refuse_null('Each message id and attempt');
  elsif cardinality(p_ids) <> cardinality(p_attempts) then
    perform menzil._refuse_value('The arrays of ids and attempts have different lengths.', 'Give one attempt number per id.');
  end if;
end $$;
