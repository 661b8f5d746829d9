-- Named readers of the change feed. behind_since is the time of the oldest row a reader has not had; NULL: it had them all.
create or replace view menzil.consumers as
select c.name, c.feed, c.xid, c.row_id, c.started_at, c.advanced_at,
       case c.feed
         when 'archive' then (select d.ended_at from menzil.done d
                               where d.ended_xid >= c.xid and (d.ended_xid > c.xid or d.hi_id > c.row_id)
                               order by d.ended_xid, d.lo_id limit 1)
         else (select e.created_at from menzil.event e where (e.xid, e.id) > (c.xid, c.row_id) order by e.xid, e.id limit 1)
       end as behind_since
  from menzil.feed_consumer c;
