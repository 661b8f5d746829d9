-- How many messages a call clears away at once. Without statement_timeout and transaction_timeout: all of them. Otherwise 2.56 for each
-- millisecond of the shorter one, and 16 at least: that takes a part of the time only.
create or replace function menzil._at_once() returns integer
language plpgsql as $$
declare
  v_ms double precision := least(nullif(extract(epoch from current_setting('statement_timeout')::interval), 0),
                                 nullif(extract(epoch from current_setting('transaction_timeout', true)::interval), 0)) * 1000;
begin
  return case when v_ms is null then 1000000000 else least(greatest(16, v_ms * 2.56), 1000000000) end;
end $$;
