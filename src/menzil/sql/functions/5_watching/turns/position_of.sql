-- The position of a message in its lane: written in returned, or in the message itself.
create or replace function menzil._position_of(p_id bigint) returns timestamptz
language sql stable set enable_seqscan = off set jit = off as $$
  select coalesce((select r.place_at from menzil.returned r where r.id = p_id), m.scheduled_at, m.created_at) from menzil.message m where m.id = p_id
$$;
