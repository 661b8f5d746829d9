-- Every try: those that failed, were deferred or lost their lease, and the successful ones from the archive.
create or replace view menzil.attempts as
select t.message_id, t.attempt, c.name as channel, t.outcome, t.leased_at, t.ended_at, t.worker, t.error
  from menzil.attempt t join menzil.channel c on c.id = t.channel_id
union all
select a.id, a.num_attempts, a.channel, 'completed', a.leased_at, a.ended_at, a.worker, null
  from menzil.archive a where a.status = 'completed';
