-- The session whose open transaction holds a row for longer than a second; nulls: there is none, or it is not to be seen. p_xmax is
-- the xmax of the row: asking for it takes no lock.
create or replace function menzil._holder(p_xmax xid, p_now timestamptz, out who text, out pid integer, out since timestamptz)
language plpgsql stable as $$
begin
  if p_xmax is null or p_xmax = '0' then
    return;
  end if;
  select coalesce('process ' || l.pid || coalesce(' (' || nullif(left(a.application_name, 60), '') || ')', ''), 'prepared transaction ' || quote_literal(left(p.gid, 60))),
         l.pid, coalesce(a.xact_start, p.prepared)
    into who, pid, since
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid left join pg_prepared_xacts p on p.transaction = p_xmax
   where l.locktype = 'transactionid' and l.transactionid = p_xmax and l.granted and coalesce(a.xact_start, p.prepared) < p_now - interval '1 s' limit 1;
end $$;
