-- Counting begins here and now: nothing that is there already is counted. Called by every install; the state of a pulse that counts stays.
create or replace function menzil._begin_pulse() returns void
language plpgsql as $$
declare
  v_writer xid;
  v_place menzil.pulse_place := menzil._next_place(null, pg_current_snapshot(), null, null);
begin
  insert into menzil.pulse_state (sent_to, ends, tries, writer) values (menzil._register('menzil.message_id'), v_place, v_place, '{}') on conflict do nothing
    returning xmin into v_writer;
  update menzil.pulse_state s set writer = array[v_writer] where v_writer is not null;
end $$;
