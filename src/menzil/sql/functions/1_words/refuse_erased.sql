create or replace function menzil._refuse_erased(p_id bigint) returns void
language plpgsql as $$
begin
  if menzil._is_erased(p_id) then
    raise exception using errcode = '55000', message = format('Message %s was erased.', p_id), hint = 'Nothing of its body is left to send: send a new message.';
  end if;
end $$;
