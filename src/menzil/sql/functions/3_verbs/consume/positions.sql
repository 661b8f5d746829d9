-- The ids of a run and the position of each. A run of one statement has one position for all; of a merged run the messages
-- are asked: the position of a message is written in one place, in returned or in the message itself.
create or replace function menzil._positions(p_run menzil.run, out ids bigint[], out dues timestamptz[])
language plpgsql
set enable_seqscan = off set jit = off as $$
begin
  ids := coalesce(p_run.ids, array(select generate_series(p_run.first_id, p_run.first_id + p_run.n - 1)));
  if p_run.due_at = p_run.last_due then
    dues := array_fill(p_run.due_at, array[p_run.n]);
  else
    dues := array(select coalesce(p.due_at, p_run.due_at) from unnest(ids) with ordinality u(id, n)
                    left join lateral (
                      select coalesce((select t.place_at from menzil.returned t where t.id = u.id), m.scheduled_at, m.created_at) as due_at
                        from menzil.message m where m.id = u.id offset 0) p on true order by u.n);
  end if;
end $$;
