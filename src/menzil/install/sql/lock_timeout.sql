-- Give way before deadlock_timeout is over: while a client and this transaction each wait for a lock of the other,
-- PostgreSQL ends the one whose deadlock_timeout is over first, and that must not be the client.
do $wait$
begin
  perform pg_catalog.set_config('lock_timeout', least(2000, greatest(1, s.setting::bigint * 4 / 5))::text, true)
     from pg_catalog.pg_settings s where s.name = 'deadlock_timeout';
end
$wait$;
