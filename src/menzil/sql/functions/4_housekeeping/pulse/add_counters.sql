-- The sum of two arrays of counters; null stands for zeros.
create or replace function menzil._add_counters(p_these integer[], p_those integer[]) returns integer[]
language sql immutable parallel safe as $$
  select case when p_those is null then p_these when p_these is null then p_those
              else array(select u.these + u.those from unnest(p_these, p_those) with ordinality u(these, those, n) order by u.n) end
$$;
