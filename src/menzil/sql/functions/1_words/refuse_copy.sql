-- Refuses to work in a copy.
create or replace function menzil._refuse_copy() returns void
language plpgsql stable as $$
begin
  if menzil._is_copy() then
    raise exception using errcode = 'MZ003', message = menzil.copy_notice(),
      hint = 'Run `menzil adopt`, or select menzil.adopt(), if what waits here is to be delivered from here.';
  end if;
end $$;
