create or replace function menzil._refuse_closed(p_name text, p_released boolean) returns void
language plpgsql as $$
begin
  if p_released then
    raise exception using errcode = '55000', message = format('Channel %s is released and takes no new messages.', quote_literal(p_name)),
      hint = 'Call menzil.channel_set(name) once it has drained to open a new one.';
  end if;
  raise exception using errcode = '55000', message = format('Endpoint %s is disabled and refuses messages.', quote_literal(p_name)),
    hint = 'Call menzil.enable_endpoint(name), or pause it instead of disabling it to accept and hold messages.';
end $$;
