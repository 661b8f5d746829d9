-- The channels of messages, by the index of ids. For functions that read small tables whole: they allow a scan of a whole table, which the
-- planner would then choose for each message where the statistics of a month mislead. An id without a message has no row.
create or replace function menzil._channels_of(p_ids bigint[]) returns table (id bigint, channel_id integer)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
begin
  return query select m.id, m.channel_id from unnest(p_ids) u(id)
                 cross join lateral (select m.id, m.channel_id from menzil.message m where m.id = u.id offset 0) m;
end $$;
