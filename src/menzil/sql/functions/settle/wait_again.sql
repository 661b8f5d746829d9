-- Puts messages that were leased back in line: at once when due, else on the schedule. Their ordering key stays theirs.
-- p_errors and p_failed tell a failure, which counts against the retry budget, from a voluntary wait.
create or replace function menzil._wait_again(
  p_ids bigint[], p_attempts bigint[], p_leased_ats timestamptz[], p_now timestamptz, p_due_ats timestamptz[],
  p_states bytea[] default null, p_errors text[] default null, p_failed integer default 0
) returns void
language plpgsql as $$
declare
  v_generation smallint := menzil._generation(p_now);
begin
  with again as materialized (
    update menzil.message m set
        attempts = u.attempt, due_at = u.due_at, next_retry_at = u.due_at, retry_count = m.retry_count + p_failed,
        first_leased_at = coalesce(m.first_leased_at, u.leased_at), state = coalesce(u.state, m.state), last_error = coalesce(u.error, m.last_error)
      from unnest(p_ids, p_attempts, p_leased_ats, p_due_ats, p_states, p_errors) u(id, attempt, leased_at, due_at, state, error)
     where m.id = u.id
    returning m.id, m.channel_id, m.rank, m.attempts, m.due_at, m.expires_at, m.ordering_key, m.due_at > p_now as later
  ), into_scheduled as (
    insert into menzil.scheduled (due_at, id, channel_id, rank, attempts, expires_at, ordering_key, holds_key)
      select a.due_at, a.id, a.channel_id, a.rank, a.attempts, a.expires_at, a.ordering_key, a.ordering_key is not null from again a where a.later
  ), into_ready as (
    insert into menzil.ready (channel_id, rank, due_at, id, attempts, expires_at, ordering_key)
      select a.channel_id, a.rank, a.due_at, a.id, a.attempts, a.expires_at, a.ordering_key from again a where not a.later
  )
  insert into menzil.arrival (generation, channel_id, rank, due_at, id)
    select v_generation, a.channel_id, a.rank, a.due_at, a.id from again a where not a.later;
end $$;
