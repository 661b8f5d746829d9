-- Takes withdrawn messages out of the runs of a locked lane. With p_tombs their tombstones go too; a message that is not
-- found in a run keeps its tombstone: it stands in a line that is not folded yet, or on the schedule. Returns the ids found.
create or replace function menzil._take_out(p_channel_id integer, p_rank smallint, p_ids bigint[], p_tombs boolean) returns bigint[]
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_lane menzil.lane;
  v_hit record;
  v_id bigint;
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
  -- Nearly every message stands in the last run that begins before it. Each run is read and written once: a thousand messages of
  -- one run may be withdrawn together, and its list of ids may be long.
  for v_hit in
    select s.at, array_agg(s.id) as ids
      from (select p.id, (select r.ctid from menzil.run r
                           where r.channel_id = p_channel_id and r.rank = p_rank and (r.due_at, r.first_id) <= (p.due_at, p.id)
                           order by r.due_at desc, r.first_id desc limit 1) as at
              from (select u.id, (select coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at)
                                    from menzil.message m where m.id = u.id) as due_at
                      from unnest(p_ids) u(id)) p) s
     where s.at is not null group by s.at
  loop
    v_found := v_found || menzil._shorten_run(v_hit.at, v_hit.ids);
  end loop;
  -- Runs of the same microsecond may overlap: the other messages are looked for in a few runs each.
  if cardinality(v_found) < cardinality(p_ids) then
    foreach v_id in array array(select u.id from unnest(p_ids) u(id) where u.id not in (select f.id from unnest(v_found) f(id))) loop
      v_found := v_found || menzil._shorten_run((
        select r.ctid from (select r.ctid, r.* from menzil.run r
                             where r.channel_id = p_channel_id and r.rank = p_rank and (r.due_at, r.first_id) <= (
                                     select coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at), m.id
                                       from menzil.message m where m.id = v_id)
                             order by r.due_at desc, r.first_id desc limit 16) r
         where case when r.ids is null then v_id between r.first_id and r.first_id + r.n - 1 else v_id = any (r.ids) end limit 1), array[v_id]);
    end loop;
  end if;
  if p_tombs and v_found <> '{}' then
    delete from menzil.withdrawn w where w.id = any (v_found);
    perform menzil._free_keys(v_found);   -- a message that was just leaving the schedule took its key after the cancel
  end if;
  return v_found;
end $$;

-- Takes these messages out of a run. Returns those that stood in it. A run begins with the first message that is left in it: a
-- line may belong between the one that was taken out and this one.
create or replace function menzil._shorten_run(p_at tid, p_ids bigint[]) returns bigint[]
language plpgsql as $$
declare
  v_run menzil.run;
  v_ids bigint[];
  v_left bigint[];
begin
  select r.* into v_run from menzil.run r where r.ctid = p_at;
  if not found then
    return '{}';
  end if;
  v_ids := coalesce(v_run.ids, array(select generate_series(v_run.first_id, v_run.first_id + v_run.n - 1)));
  -- in (select unnest(x)) is hashed, = any (x) is not: with thousands of ids that is the difference.
  v_left := array(select i.id from unnest(v_ids) with ordinality i(id, n) where i.id not in (select u.id from unnest(p_ids) u(id)) order by i.n);
  if cardinality(v_left) = v_run.n then
    return '{}';
  elsif v_left = '{}' then
    delete from menzil.run r where r.ctid = p_at;
    return v_ids;
  end if;
  update menzil.run r set n = cardinality(v_left), ids = v_left, first_id = v_left[1],
      due_at = case when r.due_at = r.last_due then r.due_at
                    else (select coalesce((select t.place_at from menzil.returned t where t.id = m.id), m.scheduled_at, m.created_at)
                            from menzil.message m where m.id = v_left[1]) end
   where r.ctid = p_at;
  return array(select u.id from unnest(p_ids) u(id) where u.id in (select i.id from unnest(v_ids) i(id)));
end $$;
