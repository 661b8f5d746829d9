-- Whether an error is the trouble of a moment (a full disk, a deadlock, a lock of another session, a shutdown) and says
-- nothing about the message at hand: it is tried again soon, and is not reported as a message that cannot be moved.
create or replace function menzil._is_passing(p_sqlstate text) returns boolean
language sql immutable
return p_sqlstate like '40%' or p_sqlstate like '57%' or p_sqlstate in ('53100', '55P03');
