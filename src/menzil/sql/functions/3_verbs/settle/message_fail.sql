-- Failed: a retry with back-off, or a dead letter. A failure is typed: p_permanents says that a retry is useless, p_rests that
-- the endpoint wants to be left alone for the retry-after. Where they are NULL, the prefix of the error says it: [RETRYABLE],
-- [PERMANENT], [PERMANENT] [DISABLE]; none means retryable. A retry-after that a consumer gives replaces the computed delay. One that
-- an endpoint asks for never shortens it: the longer of the two counts, and zero asks for nothing.
drop function if exists menzil.message_fail(bigint[], bigint[], text[], interval[]);
drop function if exists menzil.message_fail(bigint[], bigint[], text[], interval[], jsonb[]);
create or replace function menzil.message_fail(
  p_ids bigint[], p_num_attempts bigint[], p_errors text[], p_retry_afters interval[] default null,
  p_responses jsonb[] default null, p_permanents boolean[] default null, p_rests boolean[] default null, p_batches bigint[] default null
) returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_taken menzil.taken;
  v_failures menzil.failure[];
  v_settled bigint[] := '{}';
  v_dead bigint[] := '{}';
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if array_ndims(p_errors) > 1 then
    perform menzil._refuse_shape();
  elsif p_errors is null or array_position(p_errors, null) is not null then
    perform menzil._refuse_null('An error for each message');
  elsif cardinality(p_errors) <> cardinality(p_ids) or cardinality(p_retry_afters) <> cardinality(p_ids) or cardinality(p_responses) <> cardinality(p_ids)
        or cardinality(p_permanents) <> cardinality(p_ids) or cardinality(p_rests) <> cardinality(p_ids) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give one error per message.');
  elsif exists (select 1 from unnest(p_retry_afters) u(wait) where u.wait < interval '0') then
    perform menzil._refuse_value('A retry cannot be due in the past.', 'Give an interval of zero or more.');
  end if;
  for v_taken in select * from menzil._take_leases(p_ids, p_num_attempts, p_batches) loop
    -- The one place where an error text is looked at. A refusal for good is the message's fault; a 429 with a time to come back is
    -- no fault at all, nor is a broker that says it is busy; with such a time 429 and 503 ask for a rest of the whole endpoint.
    v_failures := array(
      select row(g.id, left(g.error, 8192), r.permanent, g.error ~ E'^\\s*(\\[PERMANENT\\]\\s*)?\\[DISABLE\\]', g.wait,
                 not r.permanent and (r.status is distinct from '429' or (g.wait > interval '0') is not true) and g.response ->> 'class' is distinct from 'busy',
                 coalesce(g.rest, r.status in ('429', '503'), false), g.response)::menzil.failure
        from unnest(v_taken.ids) with ordinality u(id, n)
        cross join lateral (select d.* from unnest(p_ids, p_num_attempts, p_errors, p_retry_afters, p_permanents, p_rests, p_responses)
                                              d(id, attempt, error, wait, permanent, rest, response)
                             where d.id = u.id and d.attempt = v_taken.attempt limit 1) g
        cross join lateral (select coalesce(g.permanent, g.error ~ E'^\\s*\\[(PERMANENT|DISABLE)\\]') as permanent,
                                   substring(g.error from E'^\\s*(?:\\[RETRYABLE\\]\\s*)?HTTP ([0-9]{3})\\y') as status offset 0) r
       order by u.n);
    v_dead := v_dead || menzil._fail_these(v_taken, v_failures, 'failed', v_now);
    v_settled := v_settled || v_taken.ids;
  end loop;
  return query
    select o.id, case when o.outcome = 'retry' and o.id in (select d.id from unnest(v_dead) d(id)) then 'dead' else o.outcome end
      from menzil._outcomes(p_ids, p_num_attempts, v_settled, 'retry') o;
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
