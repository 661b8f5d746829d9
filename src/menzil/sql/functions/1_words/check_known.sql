-- Refuses an id that was never sent, or whose history is gone.
create or replace function menzil._check_known(p_id bigint) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
begin
  if p_id is null then
    perform menzil._refuse_null('A message id');
  elsif not exists (select 1 from menzil.message m where m.id = p_id) then
    raise exception using errcode = '42704', message = format('There is no message %s.', p_id),
      hint = 'Use the id that send returned; dropped months leave no trace.';
  end if;
end $$;
