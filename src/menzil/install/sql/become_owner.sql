-- Work as the role that installed menzil when we may: then a migration run by an administrator leaves nothing behind
-- that the usual role could not replace later, and no SECURITY DEFINER function owned by a superuser.
do $become_owner$
declare
  v_owner      name;
  v_privilege  text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  perform set_config('menzil.installer', current_user, true);
  select pg_get_userbyid(c.relowner) into v_owner
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = 'menzil' and c.relname = 'migration';
  if v_owner <> current_user and pg_has_role(current_user, v_owner, v_privilege) then
    execute format('set local role %I', v_owner);
  end if;
end
$become_owner$;
