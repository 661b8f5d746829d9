-- Ended messages of one channel that were created from p_since to before p_until and ended before p_at, not erased ones. Counts
-- slice by slice of time, each found by the index over created_at. When the time is over, the rest is estimated from what was seen,
-- and low and high are those of the months.
create or replace function menzil._count_ended(
  p_channel_id integer, p_status text, p_since timestamptz, p_until timestamptz, p_at timestamptz, p_deadline timestamptz,
  out n bigint, out exact boolean, out low bigint, out high bigint
)
language plpgsql stable set enable_seqscan = off set plan_cache_mode = force_custom_plan set jit = off as $$
declare
  v_first timestamptz := (select m.created_at from menzil.message m order by m.id limit 1);
  v_from timestamptz := p_since;
  v_to timestamptz := greatest(p_since, v_first);
  v_width interval := '1 min';
  v_began timestamptz;
  v_slice record;
begin
  n := 0;
  exact := true;
  while v_from < p_until and v_first is not null loop
    v_began := clock_timestamp();
    v_to := least(v_to + v_width, p_until);
    select count(*) as n, min(m.id) as low, max(m.id) as high into v_slice
      from menzil.message m
      cross join lateral (select d.status, d.ended_at from menzil.done d
                           where d.lo_id > m.id - 4096 and d.lo_id <= m.id and d.hi_id >= m.id and (d.ids is null or m.id = any (d.ids))
                           order by d.lo_id desc limit 1) d
     where m.created_at >= v_from and m.created_at < v_to and m.channel_id = p_channel_id and (m.payload is not null or m.content is not null)
       and d.ended_at < p_at and (p_status is null or d.status = p_status);
    n := n + v_slice.n;
    low := least(low, v_slice.low);
    high := greatest(high, v_slice.high);
    v_from := v_to;
    if clock_timestamp() > p_deadline and v_from < p_until then
      exact := false;
      exit;
    end if;
    -- Slices of about 100 ms: the deadline is met by no more than that, unless very many were created in one moment.
    v_width := v_width * least(4, greatest(0.1, 0.1 / extract(epoch from clock_timestamp() - v_began)));
  end loop;
  if not exact then
    n := ceil(n * extract(epoch from p_until - greatest(p_since, v_first)) / extract(epoch from v_from - greatest(p_since, v_first)));
    low := (select min(m.id) from menzil.message m where m.created_at >= menzil._month_of(p_since));
    high := menzil._register('menzil.message_id');
  end if;
end $$;
