-- Two workers may have one name: each run of a worker has an entry of its own. A worker of an older release shows no instance.
alter table menzil.worker add column instance text not null default '';
alter table menzil.worker drop constraint worker_pkey;
alter table menzil.worker add primary key (name, instance);
