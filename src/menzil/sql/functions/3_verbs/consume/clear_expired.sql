-- Ends every expired message in the first run of a locked lane. A visit that found nothing but expired messages calls this while no
-- cancel is open: thousands may expire together, and a dequeue must not meet them one by one. If they cannot be ended together, a part of
-- them is tried that is half as large, until the first message that cannot be ended is found. It is reported, and stays with those
-- behind it for the visits. After the trouble of a moment all of them stay for the visits. A cancel of the call is not caught: where a
-- timeout threatens, only so many are looked at as fit into a part of it: the caller asks again until half of the time is over.
create or replace function menzil._clear_expired(p_channel_id integer, p_rank smallint, p_now timestamptz) returns void
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_run record;
  v_ids bigint[];
  v_size integer;
  v_most integer := menzil._at_once();
begin
  select r.first_id, r.n, r.flags, r.ids, case when r.due_at = l.head_due and r.first_id = l.head_id then l.gone else 0 end as gone into v_run
    from (select l.* from menzil.lane l where l.channel_id = p_channel_id and l.rank = p_rank order by l.v desc limit 1) l
    cross join lateral (select r.* from menzil.run r where r.channel_id = l.channel_id and r.rank = l.rank and (r.due_at, r.first_id) >= (l.head_due, l.head_id)
                         order by r.due_at, r.first_id limit 1) r;
  if v_run.flags & 2 = 0 is not false then
    return;
  end if;
  v_ids := array(select m.id
                   from unnest(case when v_run.ids is not null then v_run.ids[v_run.gone + 1 : v_run.gone + v_most]
                                    else array(select generate_series(v_run.first_id + v_run.gone, v_run.first_id + least(v_run.gone + v_most, v_run.n) - 1)) end) u(id)
                     cross join lateral (select m.id, m.expires_at from menzil.message m where m.id = u.id offset 0) m
                  where m.expires_at <= p_now and not exists (select 1 from menzil.withdrawn w where w.id = m.id));
  v_size := cardinality(v_ids);
  while v_ids <> '{}' loop
    begin
      perform menzil._end_waiting(menzil._take_out(p_channel_id, p_rank, v_ids[: v_size], false), 'expired', p_now);
      v_ids := v_ids[v_size + 1 :];
    exception when others then
      exit when menzil._is_passing(sqlstate);
      if v_size = 1 then
        perform menzil._note_stuck(v_ids[1], sqlerrm, p_now);
        exit;
      end if;
      v_size := v_size / 2;
    end;
  end loop;
end $$;
