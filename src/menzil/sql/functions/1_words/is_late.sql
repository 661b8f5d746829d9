-- Whether half of the time that statement_timeout or transaction_timeout allows this call is over. What a dequeue clears away before it
-- leases messages can be more than fits into that time: then it stops here, so that what was cleared is committed and not done again.
create or replace function menzil._is_late() returns boolean
language plpgsql as $$
declare
  v_statement interval := current_setting('statement_timeout');
  v_transaction interval := current_setting('transaction_timeout', true);   -- null before PostgreSQL 17
begin
  return v_statement > interval '0' and clock_timestamp() - statement_timestamp() > v_statement / 2
      or (v_transaction > interval '0' and clock_timestamp() - transaction_timestamp() > v_transaction / 2) is true;
end $$;
