-- The configs of these endpoints, with their secrets, for the worker that delivers to them. Of those whose updated_at
-- the worker already knows nothing is returned; a name that is no endpoint any more returns a row without a config.
create or replace function menzil.delivery_configs(p_names text[], p_known timestamptz[] default null)
returns table (id integer, name text, protocol text, config jsonb, updated_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  if array_ndims(p_names) > 1 then
    perform menzil._refuse_shape();
  elsif p_names is null or array_position(p_names, null) is not null then
    perform menzil._refuse_null('Each endpoint name');
  elsif cardinality(p_known) <> cardinality(p_names) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give each name the updated_at that is known of it, or NULL.');
  end if;
  return query
    select c.id, u.name, c.protocol, menzil._endpoint_config(c.id), c.updated_at
      from unnest(p_names, p_known) u(name, known)
      left join lateral (select c.id, c.protocol, c.updated_at from menzil.channel c
                          where c.name = u.name and c.protocol is not null order by c.dropped_at desc nulls first limit 1) c on true
     where c.updated_at is null or c.updated_at is distinct from u.known;
end $$;
