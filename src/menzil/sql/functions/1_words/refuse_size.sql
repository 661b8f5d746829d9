drop function if exists menzil._refuse_size(bigint, bigint);
create or replace function menzil._refuse_size(p_size bigint, p_limit bigint, p_what text default 'The payload has') returns void
language plpgsql as $$
begin
  raise exception using errcode = '54000', message = format('%s %s bytes, the limit is %s.', p_what, p_size, p_limit),
    hint = 'Send a reference to a large object, or raise the setting max_payload_size.';
end $$;
