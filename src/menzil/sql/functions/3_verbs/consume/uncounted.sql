-- Messages of a channel that are in flight and not counted in this epoch of its gate.
create or replace function menzil._uncounted(p_channel_id integer, p_epoch integer) returns integer
language sql stable
set enable_seqscan = on as $$
  select (coalesce((select sum(coalesce(cardinality(l.ids), (l.hi_id - l.lo_id)::integer + 1)) from menzil.lease l where l.channel_id = p_channel_id and l.epoch is distinct from p_epoch), 0)
        + (select count(*) from menzil._channels_of(array(select u.id from menzil.lease l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) u(id) where l.channel_id is null)) m
            where m.channel_id = p_channel_id))::integer
$$;
