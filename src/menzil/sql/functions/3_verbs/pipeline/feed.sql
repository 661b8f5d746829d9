-- The change feed for its readers: how far it is complete, what was taken away from it, and how far each reader is.

-- When rows after this place were taken away by clean-ups later than p_last_drop; NULL when nothing was lost.
create or replace function menzil.feed_lost(p_feed text, p_xid text, p_row_id bigint, p_last_drop bigint) returns timestamptz
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_xid xid8 := menzil._xid_from(p_xid);
begin
  perform menzil._check_feed(p_feed);
  if p_row_id is null or p_last_drop is null then
    perform menzil._refuse_null('A row and the last clean-up that is known');
  end if;
  return (select max(d.dropped_at) from menzil.feed_drop d
           where d.feed = p_feed and d.id > p_last_drop and (d.xid, d.row_id) > (v_xid, p_row_id));
end $$;

-- A named reader says that it is done with everything up to this place. Shown in menzil.consumers.
create or replace function menzil.feed_advance(p_consumer text, p_feed text, p_xid text, p_row_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_xid xid8 := menzil._xid_from(p_xid);
begin
  perform menzil._check_feed(p_feed);
  if not exists (select 1 from menzil.feed_consumer c where c.name = p_consumer) then   -- one that is there may be refused today
    perform menzil._check_name(p_consumer);
  end if;
  if p_row_id is null then
    perform menzil._refuse_null('A row');
  end if;
  insert into menzil.feed_consumer as c (name, feed, xid, row_id) values (p_consumer, p_feed, v_xid, p_row_id)
  on conflict (name) do update set feed = excluded.feed, xid = excluded.xid, row_id = excluded.row_id, advanced_at = clock_timestamp();
end $$;

-- Forgets a reader. Returns whether there was one.
create or replace function menzil.feed_forget(p_consumer text) returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  delete from menzil.feed_consumer c where c.name = p_consumer;
  return found;
end $$;
