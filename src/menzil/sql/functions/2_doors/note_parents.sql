-- These messages were sent because of those: the transaction that sends them writes it down, so that menzil.message_family finds them
-- at once.
create or replace function menzil._note_parents(p_ids bigint[], p_parents bigint[]) returns void
language sql volatile as $$
  insert into menzil.lineage (message_id, parent_id) select u.id, u.parent_id from unnest(p_ids, p_parents) u(id, parent_id)
$$;
