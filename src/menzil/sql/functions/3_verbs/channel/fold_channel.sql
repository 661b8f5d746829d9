-- Folds everything that the log and the lines put aside say of a channel whose gate and lanes are locked.
create or replace function menzil._fold_channel(p_channel_id integer, p_now timestamptz) returns void
language plpgsql as $$
declare
  v_rows menzil.line[];
  v_keys bigint[];
begin
  v_keys := menzil._lock_lanes(array(select distinct n.channel_id::bigint * 16 + coalesce(n.rank, 15)
    from (select n.channel_id, n.rank from menzil.line n where n.channel_id = p_channel_id
          union all select a.channel_id, a.rank from menzil.aside a where a.channel_id = p_channel_id) n));
  with gone as (
    delete from menzil.line n where n.channel_id = p_channel_id and (n.channel_id::bigint * 16 + coalesce(n.rank, 15) in (select k.key from unnest(v_keys) k(key))) is true returning n.*
  ), aside as (
    delete from menzil.aside n where n.channel_id = p_channel_id and (n.channel_id::bigint * 16 + coalesce(n.rank, 15) in (select k.key from unnest(v_keys) k(key))) is true returning n.*
  )
  select array_agg(row(g.*)::menzil.line order by g.xid) into v_rows from (select * from gone union all select * from aside) g;
  if v_rows is not null then
    perform menzil._fold_rows(p_now, v_rows);
  end if;
end $$;
