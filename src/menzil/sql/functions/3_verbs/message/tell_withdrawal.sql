-- Consumers must not wait for a transaction that withdraws messages, however long it stays open: they are told to look out
-- until every transaction that is as old has ended.
create or replace function menzil._tell_withdrawal() returns void
language plpgsql as $$
declare
  v_xid bigint := pg_current_xact_id()::text::bigint;
begin
  perform setval('menzil.withdrawn_at', menzil._microseconds(clock_timestamp()));
  if menzil._register('menzil.withdrawn_xid') < v_xid then
    perform setval('menzil.withdrawn_xid', v_xid);
  end if;
end $$;
