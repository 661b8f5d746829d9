create or replace function menzil._refuse_size(p_size bigint, p_limit bigint) returns void
language plpgsql as $$
begin
  raise exception using errcode = '54000', message = format('The payload has %s bytes, the limit is %s.', p_size, p_limit),
    hint = 'Send a reference to a large object, or raise the setting max_payload_size.';
end $$;
