-- A script is one transaction, in which an index would keep senders out for as long as it is built.
do $left_to_build$
declare
  v_left bigint := 0;
begin
  if to_regprocedure('menzil._missing_indexes()') is not null then
    execute 'select count(*) from menzil._missing_indexes()' into v_left;
  end if;
  if v_left > 0 then
    raise notice '% indexes are left to build: run menzil migrate, or the statements of menzil._missing_indexes() one by one until there is none', v_left;
  end if;
end
$left_to_build$;
