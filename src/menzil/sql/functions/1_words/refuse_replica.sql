-- Triggers check a channel and keep its gate in step. Where a session has switched them off, a new channel would give out nothing, and a
-- pause or a limit would not be obeyed. They are not ENABLE ALWAYS: on a logical replica they would write what is replicated too.
create or replace function menzil._refuse_replica() returns void
language plpgsql stable as $$
begin
  if current_setting('session_replication_role') = 'replica' then
    raise exception using errcode = '55000', message = 'Channels and endpoints cannot be changed while session_replication_role is replica.',
      hint = 'It switches off the triggers that keep their limits: run "set session_replication_role = origin" first.';
  end if;
end $$;
