-- Every try: those that failed, were deferred or lost their lease, and the successful ones from the archive.
-- How long it took is what the response says, else the time from lease to settle.
create or replace view menzil.attempts as
select t.message_id, t.attempt, c.name as channel, t.outcome, t.leased_at, t.ended_at, t.worker, t.error, t.response,
       case when t.response ->> 'status' ~ '^[0-9]{1,9}$' then (t.response ->> 'status')::integer end as status_code,
       case when jsonb_typeof(t.response -> 'duration_ms') = 'number' then (t.response ->> 'duration_ms')::numeric
            else round(extract(epoch from t.ended_at - t.leased_at) * 1000, 3) end as duration_ms
  from menzil.attempt t join menzil.channel c on c.id = t.channel_id
union all
select a.id, a.num_attempts, a.channel, 'completed', a.leased_at, a.ended_at, a.worker, null, a.response,
       case when a.response ->> 'status' ~ '^[0-9]{1,9}$' then (a.response ->> 'status')::integer end,
       case when jsonb_typeof(a.response -> 'duration_ms') = 'number' then (a.response ->> 'duration_ms')::numeric
            else round(extract(epoch from a.ended_at - a.leased_at) * 1000, 3) end
  from menzil.archive a where a.status = 'completed';
