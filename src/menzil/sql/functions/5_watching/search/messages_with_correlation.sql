-- Ids of messages that have this correlation id, live or ended, the newest first; with p_before, older ones. The table correlated knows all but
-- the newest, which the job lookups has not seen yet: these are read themselves, and so are messages of the caller's open transaction.
-- STABLE: all queries see what the caller's statement sees, so a message is in one of the two.
create or replace function menzil.messages_with_correlation(p_correlation_id uuid, p_before bigint default null, p_limit integer default 1000)
returns table (id bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  v_before bigint := coalesce(p_before, 9223372036854775807);
  v_written bigint;
  v_gaps int8multirange;
begin
  if p_correlation_id is null then
    perform menzil._refuse_null('A correlation id');
  end if;
  perform menzil._check_limit(p_limit, 100000);
  select s.written_to, s.gaps into v_written, v_gaps from menzil.lookup_state s order by s.id desc limit 1;
  return query
    select q.id from (
      (select l.message_id as id from menzil.correlated l
        where l.correlation_id = p_correlation_id and l.message_id < v_before and exists (select 1 from menzil.message m where m.id = l.message_id offset 0)
        order by l.message_id desc limit p_limit)
      union
      (select m.id from menzil.message m where m.id > coalesce(v_written, 0) and m.id < v_before and m.correlation_id = p_correlation_id order by m.id desc limit p_limit)
      union
      (select m.id from unnest(v_gaps) g(gap)
        cross join lateral (select m.id from menzil.message m
                             where m.id >= lower(g.gap) and m.id < upper(g.gap) and m.id < v_before and m.correlation_id = p_correlation_id offset 0) m)) q
     order by q.id desc limit p_limit;
end $$;
