-- Why letters died whose errors have this outline, as menzil._cause_of tells it. An outline begins with the words that name the class.
create or replace function menzil._cause_of_outline(p_outline text, out cause text, out error_class text, out cause_hash text)
language plpgsql immutable parallel safe as $$
begin
  cause := menzil._outline_cause(p_outline);
  error_class := case when p_outline ~ E'^\\s*(\\[PERMANENT\\]\\s*)?\\[DISABLE\\]' then 'DISABLE' when p_outline ~ E'^\\s*\\[PERMANENT\\]' then 'PERMANENT'
                      else 'RETRYABLE' end;
  cause_hash := menzil._cause_hash(error_class, cause);
end $$;
