-- Messages that a visit took and does not lease: they come back to their position a little later.
create or replace function menzil._set_aside(p_ids bigint[], p_flags smallint, p_now timestamptz, p_for interval default '20 ms') returns void
language plpgsql as $$
declare
  v_found integer;
begin
  insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key, holds_key)
    select p_now + p_for, m.id, m.channel_id, 10 - m.priority, coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at),
           p_flags | 1, m.ordering_key, m.ordering_key is not null
      from unnest(p_ids) u(id) cross join lateral (select m.* from menzil.message m where m.id = u.id offset 0) m;
  get diagnostics v_found = row_count;
  if v_found <> cardinality(p_ids) then   -- the message would be without a place
    raise exception using errcode = '40001', message = format('Only %s of %s messages were found that are to wait again.', v_found, cardinality(p_ids)),
      hint = 'Nothing was changed. Try again.';
  end if;
end $$;
