-- Of these messages, those whose last lease was not settled: each of them may be what killed its worker. A worker that
-- delivers them one at a time finds out which, and the others do not die with it.
create or replace function menzil.worker_suspects(p_ids bigint[]) returns setof bigint
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
begin
  if array_ndims(p_ids) > 1 then
    perform menzil._refuse_shape();
  elsif p_ids is null or array_position(p_ids, null) is not null then
    perform menzil._refuse_null('Each message id');
  end if;
  return query select r.id from menzil.returned r where r.id = any (p_ids) and r.lost order by r.id;
end $$;
