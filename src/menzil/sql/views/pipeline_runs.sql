-- Runs of `menzil pipeline`. ended_at is null while a run goes on, and stays null when it was killed.
create or replace view menzil.pipeline_runs as
select r.id, r.kind, r.lake, r.started_at, r.ended_at, r.rows, r.files, r.verdict, r.error from menzil.pipeline_run r;
