-- Whether this database is a copy of the one that menzil was installed in, or was adopted in last.
--   another oid: CREATE DATABASE ... TEMPLATE, a dump restored into this cluster, or menzil.disown
--   another cluster: a dump restored elsewhere, or a standby that pg_createsubscriber cut off. pg_upgrade makes another cluster too, but
--     of a newer release, and it takes the files of the tables along: the row has the xmin that it names.
-- A renamed database, a standby that was promoted and a table that was rewritten are no copies.
create or replace function menzil._is_copy() returns boolean
language plpgsql stable as $$
declare
  v_home record;
  v_system bigint;
begin
  select h.*, h.xmin = h.writer as in_place into v_home from menzil.home h;
  -- The path of a table names the oid of its database. A query of pg_database would read more pages than all the rest.
  if v_home.database_oid is distinct from split_part(pg_relation_filepath('menzil.home'), '/', -2)::oid then
    return true;
  end if;
  v_system := menzil._system_identifier();
  if v_system = v_home.system_identifier then
    return false;
  end if;
  return (v_home.in_place
          and (v_system is null or v_home.system_identifier is null or current_setting('server_version_num')::integer / 10000 > v_home.server_major))
         is not true;
end $$;
