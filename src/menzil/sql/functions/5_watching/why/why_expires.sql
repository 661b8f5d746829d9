-- A message that expires before what it waits for is over, or may.
create or replace function menzil._why_expires(p_expires_at timestamptz, p_blocks menzil.why[], p_now timestamptz) returns setof menzil.why
language plpgsql stable as $$
declare
  v_text text := menzil._time_text(p_expires_at);
begin
  if p_expires_at is not null and exists (
      select 1 from unnest(p_blocks) b where b.reason not in ('channel_released', 'workers_busy') and (b.until < p_expires_at) is not true) then
    return query select 'expires_first', format('It expires at %s, %s.', v_text,
        case when exists (select 1 from unnest(p_blocks) b where b.until >= p_expires_at) then 'before that' else 'unless it is leased before' end),
      null::timestamptz, p_expires_at, null::text, null::text;
  end if;
end $$;
