-- Of what a visit found: expired messages end, those that were withdrawn in this moment drop out, the rest is leased.
-- An expired one that cannot be ended is put aside for a while: it must not fail the dequeue.
create or replace function menzil._sort_out(p_ids bigint[], p_expired bigint[], p_now timestamptz) returns bigint[]
language plpgsql as $$
declare
  v_id bigint;
begin
  if p_expired is not null then
    begin
      perform menzil._end_messages(p_expired, 'expired', p_now);
    exception when others then
      foreach v_id in array p_expired loop
        begin
          perform menzil._end_messages(array[v_id], 'expired', p_now);
        exception when others then
          if not menzil._is_passing(sqlstate) then
            perform menzil._note_stuck(v_id, sqlerrm, p_now);
          end if;
          perform menzil._wait_again(array[m.id], array[m.attempts], null, p_now,
                                     array[p_now + case when menzil._is_passing(sqlstate) then interval '1 s' else interval '5 min' end])
             from menzil.message m where m.id = v_id;
        end;
      end loop;
    end;
  end if;
  return array(select u.id from unnest(p_ids) with ordinality u(id, n) where exists (select 1 from menzil.lease l where l.id = u.id) order by u.n);
end $$;
