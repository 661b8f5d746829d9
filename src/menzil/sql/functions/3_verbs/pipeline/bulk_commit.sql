-- Sends what these tokens staged, in one transaction: all of it or nothing, and once. Tokens are those of the tries that
-- succeeded, with the rows each of them reports; other rows of the staging table are dropped with it. Ids follow
-- the order of the tokens, then of the rows. A send that is done answers what it had.
create or replace function menzil.bulk_commit(
  p_send_id text, p_tokens text[], p_counts bigint[], out row_count bigint, out created_count bigint
)
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp
set work_mem = '64MB' set plan_cache_mode = force_custom_plan set jit = off as $$
declare
  v_send menzil.bulk_send;
  v_bulk menzil.bulk;
begin
  perform menzil._check_send_id(p_send_id);
  if array_ndims(p_tokens) > 1 or array_ndims(p_counts) > 1 then
    perform menzil._refuse_shape();
  elsif p_tokens is null or p_counts is null or array_position(p_tokens, null) is not null or array_position(p_counts, null) is not null then
    perform menzil._refuse_null('An array of tokens and one of counts');
  elsif cardinality(p_tokens) <> cardinality(p_counts) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give each token the number of its rows.');
  elsif exists (select 1 from unnest(p_counts) u(n) where u.n not between 0 and 1000000000000) then
    perform menzil._refuse_value('A number of rows is 0 to 1000000000000.', 'Give each token the number of its rows.');
  elsif cardinality(p_tokens) <> (select count(distinct t.token) from unnest(p_tokens) t(token)) then
    perform menzil._refuse_value('A token is named twice.', 'Use a new token for each try of each task.');
  elsif current_setting('transaction_isolation') <> 'read committed' then
    raise exception using errcode = '25001', message = 'A send is committed in READ COMMITTED transactions only.',
      hint = 'Call it in a transaction of its own: begin isolation level read committed.';
  end if;
  -- Locked: a second commit waits here for the first.
  select s.* into v_send from menzil.bulk_send s where s.send_id = p_send_id for update;
  if not found then
    raise exception using errcode = '42704', message = format('There is no send %s.', quote_literal(menzil._shown(p_send_id))),
      hint = 'It was aborted or never opened: call menzil.bulk_open(send_id) and stage its rows again.';
  end if;
  if v_send.state = 'done' then
    row_count := v_send.row_count;
    created_count := v_send.created_count;
    return;
  end if;
  v_bulk := menzil._count_bulk(v_send.staging, p_tokens, p_counts);
  if v_bulk.rows > 0 then
    begin
      v_bulk := menzil._insert_bulk(v_bulk);
    exception when data_exception or program_limit_exceeded then
      -- The casts say that a row is bad, not which one. Everything is undone already: look at each.
      perform menzil._refuse_rows(v_bulk);
      raise;
    end;
    perform menzil._place_bulk(v_bulk);
  end if;
  row_count := v_bulk.rows;
  created_count := v_bulk.rows - v_bulk.repeats;
  update menzil.bulk_send s
     set state = 'done', touched_at = clock_timestamp(), committed_at = clock_timestamp(), row_count = v_bulk.rows,
         created_count = v_bulk.rows - v_bulk.repeats, first_id = 1 + v_bulk.shifts[1],
         last_id = v_bulk.rows + v_bulk.shifts[cardinality(v_bulk.shifts)]
   where s.send_id = p_send_id;
  perform menzil._event('bulk_send', 'send', p_send_id, null, null,
    jsonb_strip_nulls(jsonb_build_object('rows', v_bulk.rows, 'messages', v_bulk.rows - v_bulk.repeats, 'what', v_send.what)));
  perform menzil._drop_staging(v_send.staging);
end $$;
