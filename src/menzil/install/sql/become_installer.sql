-- Roles are made with the rights of the role that runs this, which may have more than the owner of the tables.
do $become_installer$
begin
  if current_setting('menzil.installer') <> current_user then
    execute format('set local role %I', current_setting('menzil.installer'));
  end if;
end
$become_installer$;
