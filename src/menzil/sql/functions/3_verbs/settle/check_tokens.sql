create or replace function menzil._check_tokens(p_ids bigint[], p_attempts bigint[]) returns void
language plpgsql as $$
begin
  if array_ndims(p_ids) > 1 or array_ndims(p_attempts) > 1 then
    perform menzil._refuse_shape();
  elsif p_ids is null or p_attempts is null or array_position(p_ids, null) is not null or array_position(p_attempts, null) is not null then
    perform menzil._refuse_null('Each message id and attempt');
  elsif cardinality(p_ids) <> cardinality(p_attempts) then
    perform menzil._refuse_value('The arrays of ids and attempts have different lengths.', 'Give one attempt number per id.');
  end if;
end $$;
