-- Takes withdrawn messages out of the runs of a locked lane. With p_tombs their tombstones go too; a message that is not
-- found in a run keeps its tombstone: it stands in a line that is not folded yet, or on the schedule. Returns the ids found.
create or replace function menzil._take_out(p_channel_id integer, p_rank smallint, p_ids bigint[], p_tombs boolean) returns bigint[]
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_lane menzil.lane;
  v_id bigint;
  v_place timestamptz;
  v_run tid;
  v_runs tid[] := '{}';     -- the run of each id that was found
  v_found bigint[] := '{}';
begin
  select l.* into v_lane from menzil.lane l where l.channel_id = p_channel_id and l.rank = p_rank order by l.v desc limit 1;
  if v_lane.tail_due is null then
    return v_found;
  elsif v_lane.gone > 0 then
    perform menzil._trim_head(v_lane);
  end if;
  -- Every change of a lane's runs makes a version of the lane.
  update menzil.lane l set gone = 0, v = l.v + 1 where l.channel_id = p_channel_id and l.rank = p_rank and l.v = v_lane.v;
  foreach v_id in array p_ids loop
    v_place := (select coalesce((select t.place_at from menzil.returned t where t.id = v_id), m.scheduled_at, m.created_at) from menzil.message m where m.id = v_id);
    -- Runs of the same microsecond may overlap, hence a few.
    v_run := (select r.ctid from (select r.ctid, r.* from menzil.run r
             where r.channel_id = p_channel_id and r.rank = p_rank and (r.due_at, r.first_id) <= (v_place, v_id)
             order by r.due_at desc, r.first_id desc limit 16) r
     where case when r.ids is null then v_id between r.first_id and r.first_id + r.n - 1 else v_id = any (r.ids) end limit 1);
    if v_run is not null then
      v_runs := v_runs || v_run;
      v_found := v_found || v_id;
    end if;
  end loop;
  -- Each run is written once: a thousand messages of one run may be withdrawn together.
  with hit as materialized (
    select u.at, array_agg(u.id) as ids, count(*) as n from unnest(v_runs, v_found) u(at, id) group by u.at
  ), gone as (
    delete from menzil.run r using hit h where r.ctid = h.at and r.n = h.n
  )
  -- A run begins with the first message that is left in it: a line may belong between the one that was taken out and this one.
  update menzil.run r set n = cardinality(w.ids), ids = w.ids, first_id = w.ids[1],
      due_at = case when w.due_at = w.last_due then w.due_at
                    else (select coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at)
                            from menzil.message m where m.id = w.ids[1]) end
    from (select h.at, o.due_at, o.last_due,
                 array(select i.id from unnest(coalesce(o.ids, array(select generate_series(o.first_id, o.first_id + o.n - 1)))) with ordinality i(id, n)
                        where i.id not in (select u.id from unnest(h.ids) u(id)) order by i.n) as ids
            from hit h cross join lateral (select o.* from menzil.run o where o.ctid = h.at and o.n > h.n offset 0) o) w
   where r.ctid = w.at;
  if p_tombs and v_found <> '{}' then
    delete from menzil.withdrawn w where w.id = any (v_found);
    perform menzil._free_keys(v_found);   -- a message that was just leaving the schedule took its key after the cancel
  end if;
  return v_found;
end $$;
