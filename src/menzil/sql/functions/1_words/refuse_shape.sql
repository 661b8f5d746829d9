-- Arrays of settles and lists are flat: the search for a NULL in them is PostgreSQL's own, which knows no other.
create or replace function menzil._refuse_shape() returns void
language plpgsql as $$
begin
  perform menzil._refuse_value('An array of one dimension is needed, this one has more.', 'Pass a flat list, such as array[1, 2, 3].');
end $$;
