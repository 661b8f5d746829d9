-- For one transaction: the same names, timeouts and checks for every role, however it is configured.
set local search_path = menzil, pg_temp;
set local lock_timeout = '2s';
set local statement_timeout = 0;
set local idle_in_transaction_session_timeout = 0;   -- the client thinks between two statements
set local check_function_bodies = off;
set local client_min_messages = notice;
-- These texts are UTF-8, and a backslash in them is a backslash.
set local client_encoding = 'UTF8';
set local standard_conforming_strings = on;
-- PostgreSQL prints constants of views and functions by these; the drift check compares what it prints.
set local quote_all_identifiers = off;
set local datestyle = 'ISO, MDY';
set local intervalstyle = 'postgres';
set local timezone = 'UTC';
set local bytea_output = 'hex';
set local extra_float_digits = 1;
do $timeout$
begin
  if current_setting('server_version_num')::integer >= 170000 then
    perform set_config('transaction_timeout', '0', true);
  end if;
end
$timeout$;
