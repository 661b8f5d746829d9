-- The next leases over all channels as one dequeue of p_limit messages would take them: highest priority first, channels of equal
-- priority in turn, as many as their gates let through. Nothing is leased and nothing is locked. It follows menzil.message_dequeue step
-- by step; lanes that another consumer holds at this moment are taken for free. Looks at 2,000 lanes at most. Channels whose first
-- messages no dequeue has folded yet get their turn at the same moment: a dequeue may take these in another order.
create or replace function menzil.turns(p_limit integer default 50) returns table (
  turn integer, channel text, priority smallint, message_id bigint, ordering_key text, due_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_floor timestamptz := (select menzil._instant(s.last_value) from menzil.turn_mark s);
  v_told menzil.line[];
  v_newly menzil.turn[];          -- lanes that get their turn when the log is folded; head_id is the rank
  v_fresh menzil.turn[];          -- lanes of one priority that were not visited, longest waiting first
  v_again menzil.turn[];          -- lanes that were visited and have more
  v_loaded integer;
  v_looked integer := 0;
  v_width integer := least(8, p_limit);
  v_left integer := p_limit;
  v_before integer;
  v_rank smallint;
  v_lanes menzil.turn[];
  v_lane menzil.turn;
  v_n integer;
  v_gated boolean;
  v_gates menzil.gate[];
  v_taken jsonb := '{}';          -- messages taken so far, by lane
  v_passed jsonb := '{}';         -- messages let through so far, by channel
  v_room integer;
  v_got bigint[];                 -- what a visit leases, how many it takes from the lane, and whether the lane has more
  v_took integer;
  v_more boolean;
  v_kept bigint[];                -- of one round over several lanes, and where each stood in its lane
  v_place integer[];
  v_ids bigint[] := '{}';
begin
  perform menzil._check_limit(p_limit, 1000);
  v_told := array(select t from menzil._told_next(v_now) t);
  v_newly := array(select t from menzil._lanes_told(v_told, v_now) t);
  <<priority>>
  for v_rank in select q.rank from (select u.rank from menzil.rank_used u union select t.head_id::smallint from unnest(v_newly) t) q order by 1 loop
    v_fresh := '{}';
    v_again := '{}';
    v_loaded := 0;
    loop
      if v_loaded >= 0 and cardinality(v_fresh) < v_width then   -- more lanes, and behind the last of them the new ones
        v_lanes := array(select row(l.ctid, l.channel_id, l.name, null, null, null, l.gated)::menzil.turn from menzil.lane l
                          where l.rank = v_rank and l.next_at >= v_floor and l.next_at <= v_now order by l.next_at offset v_loaded limit 256);
        v_loaded := case when cardinality(v_lanes) < 256 then -1 else v_loaded + 256 end;
        v_fresh := v_fresh || v_lanes || case when v_loaded < 0 then array(select t from unnest(v_newly) t where t.head_id = v_rank) end;
      end if;
      v_lanes := v_fresh[: v_width] || v_again[: v_width - cardinality(v_fresh)];
      v_n := cardinality(v_lanes);
      exit priority when v_looked > 2000;
      exit when v_n = 0;
      v_again := v_again[greatest(0, v_width - cardinality(v_fresh)) + 1 :];
      v_fresh := v_fresh[v_width + 1 :];
      v_looked := v_looked + v_n;
      v_before := v_left;
      v_gated := exists (select 1 from unnest(v_lanes) t where t.gated);
      v_gates := array(select g from menzil._gates_seen(array(select distinct t.channel_id from unnest(v_lanes) t where t.gated), v_now) g where v_gated);
      v_kept := '{}';
      v_place := '{}';
      for v_part in 1 .. v_n loop
        v_lane := v_lanes[v_part];
        exit when v_left <= 0;
        v_room := case when v_gated or v_n = 1 then greatest(1, v_left / (v_n - v_part + 1)) else v_before / v_n + (v_part <= v_before % v_n)::integer end;
        if v_lane.gated then
          v_room := least(v_room, (select r.room from unnest(v_gates) g cross join lateral menzil._room_seen(g, v_now) r where g.channel_id = v_lane.channel_id)
                                  - coalesce((v_passed ->> v_lane.channel_id::text)::integer, 0));
          continue when v_room <= 0;
        end if;
        select q.ids, q.taken, q.more into v_got, v_took, v_more from menzil._visit_next(v_lane.channel_id, v_rank, (select array_agg(t) from unnest(v_told) t where t.channel_id = v_lane.channel_id and t.rank = v_rank),
          coalesce((v_taken ->> v_lane.channel_id::text)::integer, 0), v_room, case when v_gated or v_n = 1 then v_room + 1 else least(v_room + 1, 9) end, v_now) q;
        v_taken := v_taken || jsonb_build_object(v_lane.channel_id, coalesce((v_taken ->> v_lane.channel_id::text)::integer, 0) + v_took);
        if v_more then
          v_again := v_again || v_lane;
        end if;
        v_kept := v_kept || v_got;
        v_place := v_place || case when v_gated then array_fill(v_part, array[coalesce(cardinality(v_got), 0)])
                                   else array(select generate_series(1, cardinality(v_got))) end;
        if v_gated then
          v_left := v_left - coalesce(cardinality(v_got), 0);
          v_passed := v_passed || jsonb_build_object(v_lane.channel_id, coalesce((v_passed ->> v_lane.channel_id::text)::integer, 0) + coalesce(cardinality(v_got), 0));
        end if;
      end loop;
      v_ids := v_ids || array(select k.id from unnest(v_kept, v_place) with ordinality k(id, place, n) order by k.place, k.n);
      v_left := v_before - cardinality(v_kept);
      exit priority when v_left <= 0;
      -- One lane that gave less than it was asked for: the next priority follows.
      exit when not v_gated and v_n = 1 and v_width > 1 and v_took between 1 and v_room - 1;
      v_width := least(128, v_left, case when v_before > v_left then (v_left * v_n) / (v_before - v_left) + 1 else v_width * 4 end);
    end loop;
    v_taken := '{}';
  end loop;
  return query
    select u.n::integer, c.name, m.priority, u.id, m.ordering_key, coalesce(r.due_at, m.scheduled_at, m.created_at)
      from unnest(v_ids) with ordinality u(id, n)
      cross join lateral (select m.channel_id, m.priority, m.ordering_key, m.scheduled_at, m.created_at from menzil.message m where m.id = u.id offset 0) m
      cross join lateral (select c.name from menzil.channel c where c.id = m.channel_id offset 0) c
      left join lateral (select r.due_at from menzil.returned r where r.id = u.id offset 0) r on true
     order by u.n;
end $$;
