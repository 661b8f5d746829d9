create or replace function menzil._check_send_id(p_send_id text) returns void
language plpgsql immutable as $$
begin
  if p_send_id is null then
    perform menzil._refuse_null('A send id');
  end if;
  perform menzil._check_key(p_send_id, 'send id');
end $$;
