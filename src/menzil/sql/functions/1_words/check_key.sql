-- Ordering and idempotency keys are index keys: they must stay short enough for one.
create or replace function menzil._check_key(p_key text, p_what text) returns void
language plpgsql immutable as $$
begin
  if p_key = '' or octet_length(p_key) > 1024 then
    raise exception using errcode = '22023', message = format('The %s must have 1 to 1024 bytes, this one has %s.', p_what, octet_length(p_key)),
      hint = 'Use a short key, for instance a hash of the long one.';
  end if;
end $$;
