create or replace function menzil._refuse_conflict(p_key text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '23505', message = format('Idempotency key ''%s'' conflict: same key with different payload', menzil._shown(p_key)),
    hint = 'Use a new key for a new payload, or send the first payload again.';
end $$;
