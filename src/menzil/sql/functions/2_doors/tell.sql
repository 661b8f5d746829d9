-- The door into the log for messages of one lane: one line per call, or several of at most 512 ids where the ids have gaps.
-- menzil.send writes its line itself: the call would cost a tenth of the send.
create or replace function menzil._tell(p_channel_id integer, p_rank smallint, p_due_at timestamptz, p_ids bigint[], p_flags smallint) returns void
language plpgsql as $$
declare
  v_n integer := cardinality(p_ids);
begin
  if p_ids[v_n] - p_ids[1] = v_n - 1 or v_n <= 512 then
    insert into menzil.line (channel_id, rank, due_at, first_id, n, flags, ids)
      values (p_channel_id, p_rank, p_due_at, p_ids[1], v_n, p_flags, case when p_ids[v_n] - p_ids[1] <> v_n - 1 then p_ids end);
  else
    for v_from in 1 .. v_n by 512 loop
      perform menzil._tell(p_channel_id, p_rank, p_due_at, p_ids[v_from : v_from + 511], p_flags);
    end loop;
  end if;
end $$;
