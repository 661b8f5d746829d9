-- One migrator at a time in this database; the number spells "menzil". It ends with the transaction, so it cannot be
-- left behind by a killed migrator or by a pooler that hands the next transaction to another server connection.
-- No other session waits for a session that waits here, hence the longer timeout.
set local lock_timeout = '10min';
do $lock$
begin
  perform pg_catalog.pg_advisory_xact_lock(120282525984108);
end
$lock$;
