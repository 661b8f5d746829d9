-- Housekeeping: what each job does, when it ran and how it went.
create or replace view menzil.jobs as
select j.name, j.call, j.every, nullif(j.next_at, '-infinity') as next_at, j.last_run_at, j.last_worker, j.last_count, j.last_error from menzil.job j;
