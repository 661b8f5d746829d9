-- Takes every cancelled message out of the first run of a locked lane. A visit that found nothing but cancelled messages calls this:
-- one transaction may have cancelled thousands, and a dequeue must not meet them one by one. Where a timeout threatens, only so many are
-- taken out as fit into a part of it: the caller asks again until half of the time is over.
create or replace function menzil._clear_head(p_channel_id integer, p_rank smallint) returns void
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_run record;
  v_ids bigint[];
begin
  select r.first_id, r.n, r.ids, case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end as gone into v_run
    from (select l.* from menzil.lane l where l.channel_id = p_channel_id and l.rank = p_rank order by l.v desc limit 1) l
    cross join lateral (select r.* from menzil.run r where r.channel_id = l.channel_id and r.rank = l.rank and (r.due_at, r.first_id) >= (l.head_due, l.head_id)
                         order by r.due_at, r.first_id limit 1) r;
  if v_run.ids is null then
    v_ids := array(select w.id from menzil.withdrawn w where w.id between v_run.first_id + v_run.gone and v_run.first_id + v_run.n - 1
                    order by w.id limit menzil._at_once());
  else
    v_run.ids := v_run.ids[v_run.gone + 1 :];
    v_ids := array(select w.id from menzil.withdrawn w
                    where w.id between (select min(u.id) from unnest(v_run.ids) u(id)) and (select max(u.id) from unnest(v_run.ids) u(id))
                      and w.id in (select u.id from unnest(v_run.ids) u(id)) order by w.id limit menzil._at_once());
  end if;
  if v_ids <> '{}' then
    perform menzil._take_out(p_channel_id, p_rank, v_ids, true);
  end if;
end $$;
