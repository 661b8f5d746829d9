-- Whether some consumer, registered or not, dequeued in the last ten seconds. The register is read as a row: pg_sequence_last_value
-- takes a lock for writing.
create or replace function menzil._dequeued_lately(p_now timestamptz) returns boolean
language sql stable as $$
  select menzil._instant(s.last_value) > p_now - interval '10 s' from menzil.swept_at s
$$;
