-- The catalog of the lake: where the metadata of each Iceberg table is. Tables and columns are those that Iceberg's JDBC and SQL
-- catalogs expect (its version 1, with iceberg_type), so that other engines read them too. A schema of its own, because these
-- engines write into it without a function of menzil. It may be there already: made by an administrator, or left by an earlier queue.
do $lake$
begin
  if not exists (select from pg_namespace n where n.nspname = 'menzil_lake') then
    create schema menzil_lake;
  end if;
exception when insufficient_privilege then
  raise exception 'role % may not create the schema menzil_lake in database %', current_user, current_database()
    using errcode = '42501', hint = format('let an administrator run: create schema menzil_lake authorization %I', current_user);
end
$lake$;

create table if not exists menzil_lake.iceberg_tables (
  catalog_name                varchar(255) not null,
  table_namespace             varchar(255) not null,
  table_name                  varchar(255) not null,
  metadata_location           varchar(1000),
  previous_metadata_location  varchar(1000),
  iceberg_type                varchar(5),
  primary key (catalog_name, table_namespace, table_name)
);
comment on table menzil_lake.iceberg_tables is 'The current metadata of each table of the lake; a commit moves metadata_location.';

create table if not exists menzil_lake.iceberg_namespace_properties (
  catalog_name    varchar(255) not null,
  namespace       varchar(255) not null,
  property_key    varchar(255) not null,
  property_value  varchar(1000) not null,
  primary key (catalog_name, namespace, property_key)
);
comment on table menzil_lake.iceberg_namespace_properties is 'The namespaces of the lake; Iceberg keeps them here.';
insert into menzil_lake.iceberg_namespace_properties values ('menzil', 'menzil', 'exists', 'true') on conflict do nothing;
