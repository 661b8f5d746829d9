-- Why a letter died, as dead_letter keeps it: the cause, its class, and a name for both of them, 12 hexadecimal digits.
create or replace function menzil._cause_of(p_error text, out cause text, out error_class text, out cause_hash text)
language plpgsql immutable parallel safe as $$
begin
  select c.* into cause, error_class, cause_hash from menzil._cause_of_outline(menzil._error_outline(p_error)) c;
end $$;
