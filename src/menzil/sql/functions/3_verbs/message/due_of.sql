-- When a message waits for its time: what its last try said, or what it was sent with.
create or replace function menzil._due_of(p_id bigint) returns timestamptz
language sql stable set enable_seqscan = off set jit = off as $$
  select coalesce((select r.due_at from menzil.returned r where r.id = p_id), (select m.scheduled_at from menzil.message m where m.id = p_id))
$$;
