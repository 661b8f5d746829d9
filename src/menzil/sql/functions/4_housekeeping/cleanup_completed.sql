-- With the setting archive_completed off, messages that completed since it was turned off do not stay in the archive: their
-- bodies and ends go, in bounded rounds. A message with an idempotency key stays until its key need not be kept any longer.
-- What the job pulse has not counted yet stays, unless that job has not run for five minutes.
-- A round looks at what is new first, and then goes on walking over what it left earlier. Returns how many messages went.
create or replace function menzil._cleanup_completed(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_settings menzil.setting_value;
  v_state jsonb := (select j.state from menzil.job j where j.name = 'completed');
  v_open xid8 := pg_snapshot_xmin(pg_current_snapshot());   -- what ends below it is visible by now
  v_new xid8;              -- the ends from here on are new
  v_walk xid8;             -- the walk over older ones goes on behind this one
  v_walk_lo bigint := -1;
  v_from xid8;
  v_lo bigint;
  v_to xid8;
  v_done menzil.done;
  v_pulse record;
  v_seen integer;
  v_last xid8;
  v_gone xid8;             -- the last place in the feed that is gone
  v_gone_id bigint;
  v_count integer;
  v_total integer := 0;
begin
  select s.* into v_settings from menzil.setting_value s;
  if v_settings.archive_completed then
    return 0;
  end if;
  v_walk := least(v_settings.archive_off_xid, v_open);   -- after a restore it is a transaction of another cluster
  v_new := v_walk;
  if (v_state ->> 'off_at')::timestamptz = v_settings.archive_off_at and (v_state ->> 'new')::xid8 <= v_open then
    v_new := (v_state ->> 'new')::xid8;
    v_walk := (v_state ->> 'walk')::xid8;
    v_walk_lo := (v_state ->> 'walk_lo')::bigint;
  end if;
  select (s.ends).counted_to, (s.ends).late, s.sent_to, s.gaps into v_pulse
    from menzil.pulse_state s where s.gauged_at is not null and s.counted_at > clock_timestamp() - interval '5 min';
  for v_pass in 1 .. 2 loop
    v_from := case when v_pass = 1 then v_new else v_walk end;
    v_lo := case when v_pass = 1 then -1 else v_walk_lo end;
    v_to := case when v_pass = 1 then '9223372036854775807' else v_new end;
    v_seen := 0;
    for v_done in
      select d.* from menzil.done d where (d.ended_xid, d.lo_id) > (v_from, v_lo) and d.ended_xid < v_to order by d.ended_xid, d.lo_id limit p_limit for update skip locked
    loop
      v_seen := v_seen + 1;
      v_last := v_done.ended_xid;
      v_lo := v_done.lo_id;
      continue when v_done.status <> 'completed' or v_done.ended_at < v_settings.archive_off_at;
      continue when v_done.ended_xid >= v_pulse.counted_to or v_done.ended_xid = any (v_pulse.late) or v_done.hi_id > v_pulse.sent_to
        or v_pulse.gaps && int8range(v_done.lo_id, v_done.hi_id, '[]');
      delete from menzil.message m where m.id between v_done.lo_id and v_done.hi_id and (v_done.ids is null or m.id = any (v_done.ids))
         and (m.idempotency_key is null or v_done.ended_at <= clock_timestamp() - v_settings.idempotency_retention * interval '1 s');
      get diagnostics v_count = row_count;
      delete from menzil.returned r where r.id between v_done.lo_id and v_done.hi_id and (v_done.ids is null or r.id = any (v_done.ids))
         and not exists (select 1 from menzil.message m where m.id = r.id);
      delete from menzil.done d where d.lo_id = v_done.lo_id and d.hi_id = v_done.hi_id and d.ended_xid = v_done.ended_xid and d.attempt = v_done.attempt
         and not exists (select 1 from menzil.message m where m.id between d.lo_id and d.hi_id and (d.ids is null or m.id = any (d.ids)));
      if v_count > 0 and (v_gone, v_gone_id) < (v_done.ended_xid, v_done.hi_id) is not false then
        v_gone := v_done.ended_xid;
        v_gone_id := v_done.hi_id;
      end if;
      v_total := v_total + v_count;
      v_seen := v_seen + v_count;
      exit when v_seen >= p_limit;
    end loop;
    if v_pass = 1 then
      -- More ends of one transaction than a round looks at: the walk comes to the rest of them.
      v_new := least(case when v_seen >= p_limit then greatest(v_last, ((v_from::text::bigint + 1)::text)::xid8) else v_open end, v_open);
    elsif v_seen >= p_limit then
      v_walk := v_last;
      v_walk_lo := v_lo;
    else   -- from the beginning again
      v_walk := least(v_settings.archive_off_xid, v_open);
      v_walk_lo := -1;
    end if;
  end loop;
  perform menzil._feed_dropped('archive', v_gone, v_gone_id);   -- readers of the change feed may want to know
  update menzil.job j set state = jsonb_build_object('off_at', v_settings.archive_off_at, 'new', v_new::text, 'walk', v_walk::text, 'walk_lo', v_walk_lo)
   where j.name = 'completed';
  return v_total;
end $$;
