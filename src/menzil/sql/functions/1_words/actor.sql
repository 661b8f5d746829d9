-- Who acts: what the session says in menzil.actor, with the role it logged in as when that is another; else that role. Every
-- session may say what it likes, so only the role is certain.
create or replace function menzil._actor() returns text
language sql stable
return (select case when coalesce(s.said, '') in ('', session_user::text) then session_user::text else format('%s (as %s)', s.said, session_user) end
          from (select btrim(left(regexp_replace(current_setting('menzil.actor', true), '[[:cntrl:]]', ' ', 'g'), 200)) as said) s);
