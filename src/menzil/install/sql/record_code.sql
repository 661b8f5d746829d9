insert into menzil.installed_code (schema_version, checksum, package, server_major, roles)
select {version}, '{checksum}', '{package}', current_setting('server_version_num')::integer / 10000,
       {roles}
    on conflict (only_row) do update
   set schema_version = excluded.schema_version, checksum = excluded.checksum, package = excluded.package,
       server_major = excluded.server_major, roles = excluded.roles, applied_at = clock_timestamp();
