-- Why a letter died, as dead_letter keeps it: the cause, its class, and a name for both of them, 12 hexadecimal digits.
create or replace function menzil._cause_of(p_error text, out cause text, out error_class text, out cause_hash text)
language plpgsql immutable parallel safe as $$
begin
  cause := menzil._error_cause(p_error);
  error_class := case when p_error ~ E'^\\s*(\\[PERMANENT\\]\\s*)?\\[DISABLE\\]' then 'DISABLE' when p_error ~ E'^\\s*\\[PERMANENT\\]' then 'PERMANENT'
                      else 'RETRYABLE' end;
  cause_hash := menzil._cause_hash(error_class, cause);
end $$;
