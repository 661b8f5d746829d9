-- A command line with one argument that people may paste into a shell: every character of the argument is quoted. An argument that
-- begins with a hyphen would be read as an option: two hyphens go before it, and options before those.
drop function if exists menzil._command(text, text);
create or replace function menzil._command(p_command text, p_argument text, p_options text default '') returns text
language sql immutable parallel safe
return 'menzil ' || p_command || case when p_argument like '-%' then p_options || ' -- ' else ' ' end
    || case when p_argument ~ '^[A-Za-z0-9_./:@%+=,-]+$' then p_argument else '''' || replace(p_argument, '''', E'''\\''''') || '''' end
    || case when p_argument like '-%' then '' else p_options end;
