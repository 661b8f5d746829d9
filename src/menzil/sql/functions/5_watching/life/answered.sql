-- How long a try took and the status of the answer, as the response tells it; else the time from lease to settle.
create or replace function menzil._answered(p_response jsonb, p_leased_at timestamptz, p_ended_at timestamptz, out ms double precision, out code integer)
language sql immutable parallel safe as $$
  select case when jsonb_typeof(p_response -> 'duration_ms') = 'number' and abs((p_response ->> 'duration_ms')::numeric) < 1e15 then (p_response ->> 'duration_ms')::double precision
              else extract(epoch from p_ended_at - p_leased_at)::double precision * 1000 end,
         case when p_response ->> 'status' ~ '^[0-9]{1,9}$' then (p_response ->> 'status')::integer end
$$;
