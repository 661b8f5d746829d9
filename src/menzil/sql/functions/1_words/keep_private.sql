-- Takes every right on a table or sequence back from all roles but its owner. Default privileges (ALTER DEFAULT PRIVILEGES) that the owner
-- has given to others reach each table it makes, and menzil's tables are private. Returns whom something was taken back from.
create or replace function menzil._keep_private(p_relation regclass) returns text[]
language plpgsql as $$
declare
  v_others text[];
  v_other text;
begin
  v_others := array(select distinct case a.grantee when 0 then 'public' else a.grantee::regrole::text end
                      from pg_class c cross join lateral aclexplode(c.relacl) a where c.oid = p_relation and a.grantee <> c.relowner);
  foreach v_other in array v_others loop
    execute format('revoke all on %s from %s cascade', p_relation, v_other);
  end loop;
  return v_others;
end $$;
