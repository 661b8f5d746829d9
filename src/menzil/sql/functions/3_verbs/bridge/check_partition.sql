-- A partition is an index key, and a position is shown to people: both must stay short.
create or replace function menzil._check_partition(p_partition text, p_position text) returns void
language plpgsql immutable as $$
begin
  if octet_length(p_partition) > 1100 or octet_length(p_position) > 1100 then
    raise exception using errcode = '22023', message = 'A partition and a position have at most 1100 bytes.', hint = 'Use names and numbers of the source.';
  end if;
end $$;
