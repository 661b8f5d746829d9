-- When a clock on the wall of that zone shows this time: once as a rule (first_at = last_at), twice when it was set
-- back over it, never when it was set forward over it: then in_gap, and both are the first instant after the gap.
-- Offsets lie between -12 and +14 hours, so the two probes surround every change that could matter here.
create or replace function menzil._wall_instants(
  p_wall timestamp, p_time_zone text, out first_at timestamptz, out last_at timestamptz, out in_gap boolean
)
language plpgsql immutable as $$
declare
  v_at timestamptz := p_wall at time zone 'UTC';
  v_before interval := menzil._utc_offset(v_at - interval '15 hours', p_time_zone);
  v_after interval := menzil._utc_offset(v_at + interval '13 hours', p_time_zone);
  v_middle timestamptz;
begin
  first_at := v_at - v_before;
  last_at := v_at - v_after;
  in_gap := false;
  if v_before = v_after then
    return;
  end if;
  select count(*) = 0, coalesce(min(c.at), first_at), coalesce(max(c.at), last_at) into in_gap, first_at, last_at
    from (values (first_at), (last_at)) c(at) where c.at at time zone p_time_zone = p_wall;
  -- In a gap the change lies after last_at and not after first_at; changes happen on whole seconds.
  while in_gap and first_at - last_at > interval '1 second' loop
    v_middle := last_at + make_interval(secs => floor(extract(epoch from first_at - last_at) / 2));
    if menzil._utc_offset(v_middle, p_time_zone) = v_before then
      last_at := v_middle;
    else
      first_at := v_middle;
    end if;
  end loop;
  last_at := case when in_gap then first_at else last_at end;
end $$;
