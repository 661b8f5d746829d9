-- Through what: what the session says in menzil.via, if it is a known word, else what its application_name tells.
create or replace function menzil._via() returns text
language sql stable
return case when current_setting('menzil.via', true) in ('console', 'cli', 'worker', 'pipeline', 'sql') then current_setting('menzil.via', true)
            when current_setting('application_name') like 'menzil worker%' then 'worker'
            when current_setting('application_name') ~ '^menzil (export|pipeline|spark)' then 'pipeline' else 'sql' end;
