-- Gives up a send that is open: its rows are gone and its id is free. One that is done stays. Returns whether it was open.
create or replace function menzil.bulk_abort(p_send_id text) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_staging text;
begin
  perform menzil._check_send_id(p_send_id);
  delete from menzil.bulk_send s where s.send_id = p_send_id and s.state = 'open' returning s.staging into v_staging;
  if not found then
    return false;
  end if;
  perform menzil._drop_staging(v_staging);
  return true;
end $$;
