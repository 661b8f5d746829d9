-- The only writer of done: these messages have ended. The ids are ascending. A row spans at most 4096 ids, so that the
-- end of one message is found among its neighbours. The caller has taken the messages out of their lease, run, line,
-- schedule or key queue in this transaction, so no other transaction can end them too.
create or replace function menzil._end(
  p_ids bigint[], p_status text, p_attempt bigint, p_leased_at timestamptz, p_worker text, p_now timestamptz, p_responses jsonb[] default null
) returns void
language plpgsql as $$
declare
  v_n integer := cardinality(p_ids);
begin
  if p_ids[v_n] - p_ids[1] < 4096 then
    insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker, ids, responses)
      values (p_ids[1], p_ids[v_n], v_n, p_status, p_attempt, p_leased_at, p_now, pg_current_xact_id(), p_worker,
              case when p_ids[v_n] - p_ids[1] <> v_n - 1 then p_ids end, p_responses);
  else
    insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker, ids, responses)
      select min(u.id), max(u.id), count(*), p_status, p_attempt, p_leased_at, p_now, pg_current_xact_id(), p_worker,
             case when max(u.id) - min(u.id) <> count(*) - 1 then array_agg(u.id order by u.id) end,
             case when p_responses is not null then array_agg(u.response order by u.id) end
        from unnest(p_ids, p_responses) u(id, response) group by u.id >> 12;
  end if;
end $$;
