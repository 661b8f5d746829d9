-- What a dequeue does before it looks for work: due schedules become ready, expired leases come back, arrivals are
-- folded. Usually a look at what is recent; four times a second somebody looks at everything, and once a second somebody
-- does the chores. The registers that say when are hints: a lost one costs a look too many.
create or replace function menzil._tend(p_now timestamptz) returns void
language plpgsql as $$
declare
  v_us bigint := menzil._microseconds(p_now);
  v_since timestamptz := p_now - interval '2 s';
  v_swept bigint := menzil._register('menzil.swept_at');
  v_leases boolean;
  v_schedules boolean;
  v_arrivals boolean;
  v_full boolean;
begin
  select exists (select 1 from menzil.lease_batch b where b.unlock_at >= v_since and b.unlock_at <= p_now),
         exists (select 1 from menzil.scheduled d where d.due_at >= v_since and d.due_at <= p_now),
         -- A long log is mostly read already: folding knows from where on, a plain look does not.
         pg_relation_size('menzil.arrival_0') > 131072 or exists (select 1 from menzil.arrival_0)
           or pg_relation_size('menzil.arrival_1') > 131072 or exists (select 1 from menzil.arrival_1)
           or pg_relation_size('menzil.arrival_2') > 131072 or exists (select 1 from menzil.arrival_2)
           or pg_relation_size('menzil.arrival_3') > 131072 or exists (select 1 from menzil.arrival_3)
    into v_leases, v_schedules, v_arrivals;
  v_full := v_us - v_swept not between 0 and 250000;
  if v_full then
    v_since := '-infinity';
    perform setval('menzil.swept_at', v_us);
    if v_us / 1000000 <> v_swept / 1000000 then
      perform menzil._chores(p_now);
    end if;
  end if;
  if v_leases or v_full then
    perform menzil._recover(p_now, v_since, 100);
  end if;
  if v_schedules or v_full then
    perform menzil._promote(p_now, v_since, 500);
    v_arrivals := true;
  end if;
  if v_arrivals or v_full then
    perform menzil._fold(p_now, v_full);
  end if;
end $$;
