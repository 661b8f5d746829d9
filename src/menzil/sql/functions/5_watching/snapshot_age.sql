-- How long the oldest snapshot of another session is held, in seconds, prepared transactions included; 0: there is none. Old row versions
-- stay as long as a snapshot could see them.
create or replace function menzil._snapshot_age(p_now timestamptz) returns double precision
language sql stable as $$
  select coalesce(extract(epoch from p_now - min(s.since)), 0)::float8
    from (select a.xact_start as since from pg_stat_activity a
           where a.xact_start is not null and (a.backend_xmin is not null or a.backend_xid is not null) and a.pid <> pg_backend_pid()
             and a.backend_type <> 'autovacuum worker'
          union all select p.prepared from pg_prepared_xacts p) s
$$;
