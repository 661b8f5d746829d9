-- Transactions that may have drawn ids for messages that no snapshot shows yet. Drawing an id locks the sequence until the
-- transaction ends; a transaction that writes to other tables does not count. since: the lowest of their transaction ids. next:
-- above every one of them. all_named: each of them has a transaction id.
create or replace function menzil._open_senders(out n bigint, out since bigint, out next bigint, out all_named boolean)
language sql volatile as $$
  select count(l.locktype), coalesce(min(x.xid), s.next), greatest(s.next, max(x.xid) + 1), bool_and(l.locktype is null or x.xid is not null)
    from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next) s
    left join pg_locks l on l.relation = 'menzil.message_id'::regclass and l.database = (select d.oid from pg_database d where d.datname = current_database())
                        and l.mode = 'RowExclusiveLock' and l.pid is distinct from pg_backend_pid()
    left join pg_locks t on t.virtualtransaction = l.virtualtransaction and t.locktype = 'transactionid' and t.mode = 'ExclusiveLock'
    -- pg_locks shows 32 bits: the rest is that of the newest transaction, or of the one before it.
    cross join lateral (select (s.next & ~4294967295) | t.transactionid::text::bigint as xid) e
    cross join lateral (select case when e.xid > s.next + 1000000 then e.xid - 4294967296 else e.xid end as xid) x
   group by s.next
$$;
