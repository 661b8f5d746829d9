-- Whether a month must stay: a message of it is live, or a dead letter.
create or replace function menzil._month_stays(p_month timestamptz) returns boolean
language sql stable set timezone = 'UTC' as $$
  select exists (select 1 from menzil.dead_letter d where d.created_at >= p_month and d.created_at < p_month + interval '1 month')
      or menzil._month_lives(p_month)
$$;
