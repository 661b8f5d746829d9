-- Whether the body of a message was erased: every message is sent with one.
create or replace function menzil._is_erased(p_id bigint) returns boolean
language plpgsql stable set enable_seqscan = off set jit = off as $$
begin
  return exists (select 1 from menzil.message m where m.id = p_id and m.payload is null and m.content is null);
end $$;
