-- For one transaction: the same names, waits and checks whoever connects and however the role is configured.
set local search_path = menzil, pg_temp;
set local lock_timeout = '2s';
set local statement_timeout = 0;
set local check_function_bodies = off;
set local client_min_messages = notice;
set local quote_all_identifiers = off;
