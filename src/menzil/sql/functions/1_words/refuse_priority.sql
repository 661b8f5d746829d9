create or replace function menzil._refuse_priority(p_priority integer) returns void
language plpgsql as $$
begin
  if p_priority is null then
    perform menzil._refuse_null('A priority');
  end if;
  perform menzil._refuse_value(format('Priority %s is out of range, it must be 0 to 10.', p_priority), 'Use 0 for normal work and up to 10 for urgent work.');
end $$;
