-- Whether a message that was created in this month is live. Only live messages with ids of the month are looked up.
create or replace function menzil._month_lives(p_month timestamptz) returns boolean
language plpgsql stable set timezone = 'UTC' set jit = off as $$
declare
  v_end timestamptz := p_month + interval '1 month';
  v_span record;
begin
  select * into v_span from menzil.archive_span(p_month, v_end);
  return exists (select 1 from menzil.queue q where q.id between v_span.first_id and v_span.last_id and q.created_at >= p_month and q.created_at < v_end);
end $$;
