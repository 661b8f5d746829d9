-- The registers of ids given out and of messages ended. Read as rows: pg_sequence_last_value, which dequeues and sends use,
-- is quicker and takes a lock for writing.
create or replace function menzil._told_totals(out sent bigint, out ended bigint)
language sql stable as $$
  select case when m.is_called then m.last_value else 0 end, case when e.is_called then e.last_value else 0 end
    from menzil.message_id m, menzil.ended_count e
$$;
