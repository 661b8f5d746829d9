-- A command line with one argument that people may paste into a shell: every character of the argument is quoted.
create or replace function menzil._command(p_command text, p_argument text) returns text
language sql immutable parallel safe
return 'menzil ' || p_command || ' ' || case when p_argument like '-%' then '-- ' else '' end
    || case when p_argument ~ '^[A-Za-z0-9_./:@%+=,-]+$' then p_argument else '''' || replace(p_argument, '''', E'''\\''''') || '''' end;
