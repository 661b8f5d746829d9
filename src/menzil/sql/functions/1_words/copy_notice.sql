-- What a copy says of itself, in one sentence; null where this database is no copy.
create or replace function menzil.copy_notice() returns text
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if not menzil._is_copy() then
    return null;
  end if;
  return (select case when h.database_oid = 0 then format('Database %s was disowned', quote_ident(current_database()))
                      when h.database_oid is null then format('Database %s does not know where it was installed', quote_ident(current_database()))
                      else format('Database %s is a copy of database %s, installed %s', quote_ident(current_database()), quote_ident(h.database_name),
                                  to_char(h.recorded_at at time zone 'UTC', 'YYYY-MM-DD')) end
                 || ': it gives out no messages and fires no schedules.'
            from (select 1) one left join menzil.home h on true);
end $$;
