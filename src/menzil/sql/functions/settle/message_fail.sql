-- Failed: a retry with back-off, or a dead letter. p_errors begin with their class: [RETRYABLE], [PERMANENT],
-- [PERMANENT] [DISABLE]; none means retryable. A retry-after given by the other side replaces the computed delay.
drop function if exists menzil.message_fail(bigint[], bigint[], text[], interval[]);
create or replace function menzil.message_fail(
  p_ids bigint[], p_num_attempts bigint[], p_errors text[], p_retry_afters interval[] default null,
  p_responses jsonb[] default null
) returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_lease record;
  v_given record;
  v_dead bigint[];
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if array_ndims(p_errors) > 1 then
    perform menzil._refuse_shape();
  elsif p_errors is null or array_position(p_errors, null) is not null then
    perform menzil._refuse_null('An error for each message');
  elsif cardinality(p_errors) <> cardinality(p_ids) or cardinality(p_retry_afters) <> cardinality(p_ids)
        or cardinality(p_responses) <> cardinality(p_ids) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give one error per message.');
  elsif exists (select 1 from unnest(p_retry_afters) u(wait) where u.wait < interval '0') then
    perform menzil._refuse_value('A retry cannot be due in the past.', 'Give an interval of zero or more.');
  end if;
  select * into v_lease from menzil._take_leases(p_ids, p_num_attempts);
  if v_lease.ids is not null then
    select array_agg(left(g.error, 8192) order by u.n) as errors, array_agg(g.wait order by u.n) as waits,
           array_agg(g.response order by u.n) as responses into v_given
      from unnest(v_lease.ids, v_lease.attempts) with ordinality u(id, attempt, n)
      cross join lateral (select d.error, d.wait, d.response
                            from unnest(p_ids, p_num_attempts, p_errors, p_retry_afters, p_responses) d(id, attempt, error, wait, response)
                           where d.id = u.id and d.attempt = u.attempt limit 1) g;
    v_dead := menzil._fail_leases(v_lease.ids, v_lease.attempts, v_lease.channels, v_lease.leased_ats, v_lease.workers,
      v_given.errors, v_given.waits, 'failed', v_now, v_given.responses);
    perform menzil._free_slots(v_lease.channels, v_lease.epochs, v_now);
  end if;
  return query
    select o.id, case when o.outcome = 'retry' and o.id = any (v_dead) then 'dead' else o.outcome end
      from menzil._outcomes(p_ids, p_num_attempts, v_lease.ids, 'retry') o;
end $$;

create or replace function menzil.message_fail(p_id bigint, p_num_attempts bigint, p_error text, p_retry_after interval default null) returns text
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_outcome text;
begin
  v_outcome := (select o.outcome from menzil.message_fail(array[p_id], array[p_num_attempts], array[p_error], array[p_retry_after]) o);
  perform menzil._raise_outcome(p_id, p_num_attempts, v_outcome);
  return v_outcome;
end $$;
