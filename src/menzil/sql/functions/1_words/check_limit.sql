-- The limit of a round of housekeeping, or of a list.
create or replace function menzil._check_limit(p_limit integer, p_most integer) returns void
language plpgsql as $$
begin
  if p_limit is null then
    perform menzil._refuse_null('A limit');
  elsif p_limit not between 1 and p_most then
    perform menzil._refuse_value(format('A limit of %s is out of range, it must be 1 to %s.', p_limit, p_most),
      case when p_limit < 1 then 'Give 1 or more.' else 'Call several times for more.' end);
  end if;
end $$;
