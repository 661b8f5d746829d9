-- Ids go on above every id there is: logical replication carries rows and leaves sequences behind. Only upwards: a sender may have
-- drawn an id and wait for its table.
create or replace function menzil._raise_ids() returns void
language plpgsql as $$
declare
  v_column record;
  v_id bigint;
begin
  for v_column in
    select s.oid::regclass as sequence, d.refobjid::regclass as relation, a.attname as name
      from pg_class s
      join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = s.oid and d.refclassid = 'pg_class'::regclass and d.deptype = 'i'
      join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
     where s.relkind = 'S' and s.relnamespace = 'menzil'::regnamespace
  loop
    execute format('select max(%I) from %s', v_column.name, v_column.relation) into v_id;
    perform setval(v_column.sequence, v_id) where v_id > menzil._register(v_column.sequence);
  end loop;
  v_id := greatest((select max(m.id) from menzil.message m),
                   (select max(d.hi_id) from menzil.done d where d.lo_id > (select max(l.lo_id) from menzil.done l) - 4096), 1);
  perform setval('menzil.message_id', v_id) where v_id > menzil._register('menzil.message_id');
end $$;
