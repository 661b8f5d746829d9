-- The installer's own books: which migrations this database has, which code it runs, and how that code looked when it
-- was applied. Every step asks first, because IF NOT EXISTS asks for the right to create even when there is nothing to do.
do $books$
declare
  v_schema  oid;
begin
  select oid into v_schema from pg_namespace where nspname = 'menzil';
  if v_schema is null then
    create schema menzil;
    select oid into v_schema from pg_namespace where nspname = 'menzil';
  end if;
  if not exists (select from pg_class where relnamespace = v_schema and relname = 'migration') then
    create table menzil.migration (
      version     integer primary key check (version > 0),
      name        text not null,
      checksum    text not null,
      applied_at  timestamptz not null default clock_timestamp()
    );
    comment on table menzil.migration is 'Migrations this database has; written by the installer only.';
  end if;
  if not exists (select from pg_class where relnamespace = v_schema and relname = 'installed_code') then
    create table menzil.installed_code (
      only_row        boolean primary key default true check (only_row),
      schema_version  integer not null,
      checksum        text not null,
      package         text not null,
      server_major    integer not null,
      roles           text[] not null,
      applied_at      timestamptz not null default clock_timestamp()
    );
    comment on table menzil.installed_code is 'The functions, views and grants this database runs; written by the installer only.';
  end if;
  if not exists (select from pg_class where relnamespace = v_schema and relname = 'installed_object') then
    create table menzil.installed_object (
      kind         text not null check (kind in ('function', 'procedure', 'view')),
      name         text not null,
      fingerprint  text not null,
      ours         boolean not null default false,
      primary key (kind, name)
    );
    comment on table menzil.installed_object is 'How functions and views looked when they were applied; read by the drift check.';
  elsif not exists (select from pg_attribute where attrelid = 'menzil.installed_object'::regclass and attname = 'ours') then
    -- Of releases before 0.2, which did not tell their own functions from those that others had put here.
    alter table menzil.installed_object drop constraint installed_object_kind_check,
      add constraint installed_object_kind_check check (kind in ('function', 'procedure', 'view')),
      add column ours boolean not null default false;
  end if;
end
$books$;
