-- A write to a view, by its owner: other roles have no right to one. tg_argv names the functions that do it.
create or replace function menzil._refuse_write() returns trigger
language plpgsql as $$
begin
  perform menzil._refuse_value(format('The view menzil.%s is for reading.', tg_table_name), tg_argv[0]);
  return null;
end $$;
