-- The scalar settles raise what the array forms report.
create or replace function menzil._raise_outcome(p_id bigint, p_attempt bigint, p_outcome text) returns void
language plpgsql as $$
begin
  if p_outcome = 'stale' then
    raise exception using errcode = 'MZ001', message = format('The lease of message %s, attempt %s, is stale.', p_id, p_attempt),
      hint = 'It expired and the message went on without you; drop this result.';
  elsif p_outcome = 'unknown' or p_outcome is null then
    raise exception using errcode = 'MZ002', message = format('Message %s is not in flight.', coalesce(p_id::text, 'NULL')),
      hint = 'It has ended, waits, or never was; look with menzil.message_status(id).';
  end if;
end $$;
