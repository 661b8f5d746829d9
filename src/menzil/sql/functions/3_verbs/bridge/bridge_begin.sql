-- Where a partition stands. A partition that is new begins at p_start, which is kept at once: `latest` must not mean something later
-- after a restart.
create or replace function menzil.bridge_begin(p_name text, p_partition text, p_start text) returns text
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id integer;
  v_position text;
begin
  if p_name is null or p_partition is null then
    perform menzil._refuse_null('The name and the partition of a bridge');
  end if;
  perform menzil._check_partition(p_partition, p_start);
  perform menzil._refuse_copy();
  select b.id into v_id from menzil.bridge b where b.name = p_name;
  perform menzil._refuse_unknown_bridge(p_name) where v_id is null;
  insert into menzil.bridge_position as p (bridge_id, partition, position) select v_id, p_partition, p_start where p_start is not null
    on conflict (bridge_id, partition) do update set position = excluded.position where p.position is null;
  select p.position into v_position from menzil.bridge_position p where p.bridge_id = v_id and p.partition = p_partition;
  return v_position;
end $$;
