-- Plans: redrives, replays and cancels of many messages, and how far they are.
create or replace view menzil.plans as
select p.id, p.kind, p.filter, p.rate, p.note, p.status, p.actor, p.via, p.counted, p.counted_exactly, g.done, g.skipped, g.taken_back,
       p.created_at, p.started_at, p.ended_at, g.last_due_at, g.last_error
  from menzil.plan p join menzil.plan_progress g on g.plan_id = p.id;
