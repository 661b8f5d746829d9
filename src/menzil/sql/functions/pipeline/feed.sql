-- The change feed for its readers: how far it is complete, what was taken away from it, and how far each reader is.

create or replace function menzil._check_feed(p_feed text) returns void
language plpgsql as $$
begin
  if p_feed is null then
    perform menzil._refuse_null('The name of a feed');
  elsif p_feed not in ('archive', 'event_log') then
    perform menzil._refuse_value(format('There is no feed %s.', quote_literal(menzil._shown(p_feed))), 'Choose archive or event_log.');
  end if;
end $$;

-- Called by what removes history: the rows that are gone reach up to this place. An earlier clean-up that reached no
-- further says nothing new and is forgotten, so the table stays small.
create or replace function menzil._feed_dropped(p_feed text, p_xid xid8, p_row_id bigint) returns void
language plpgsql as $$
begin
  if p_xid is not null then
    delete from menzil.feed_drop d where d.feed = p_feed and (d.xid, d.row_id) <= (p_xid, p_row_id);
    insert into menzil.feed_drop (feed, xid, row_id) values (p_feed, p_xid, p_row_id);
  end if;
end $$;

-- Up to where a feed is complete: rows of transactions before `xid` are all there or never come. `last_drop` is the
-- number of the latest clean-up. `foreign_rows` tells that the rows were written by another server, whose transaction
-- ids mean nothing here: a database restored from a dump.
create or replace function menzil.feed_position(p_feed text) returns table (xid text, last_drop bigint, foreign_rows boolean)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set jit = off as $$
declare
  v_snapshot pg_snapshot;
  v_last xid8;
begin
  perform menzil._check_feed(p_feed);
  if p_feed = 'archive' then
    v_last := (select a.ended_xid from menzil.archive a order by a.ended_xid desc, a.id desc limit 1);
  else
    v_last := (select e.xid from menzil.event e order by e.xid desc, e.id desc limit 1);
  end if;
  v_snapshot := pg_current_snapshot();   -- after the look at the last row: a row that was visible is below its xmax
  return query
    select pg_snapshot_xmin(v_snapshot)::text, coalesce((select max(d.id) from menzil.feed_drop d where d.feed = p_feed), 0),
           coalesce(v_last >= pg_snapshot_xmax(v_snapshot) and v_last is distinct from pg_current_xact_id_if_assigned(), false);
end $$;

-- When rows after this place were taken away by clean-ups later than p_last_drop; NULL when nothing was lost.
create or replace function menzil.feed_lost(p_feed text, p_xid text, p_row_id bigint, p_last_drop bigint) returns timestamptz
language plpgsql stable security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._check_feed(p_feed);
  return (select max(d.dropped_at) from menzil.feed_drop d
           where d.feed = p_feed and d.id > p_last_drop and (d.xid, d.row_id) > (p_xid::xid8, p_row_id));
end $$;

-- A named reader says that it is done with everything up to this place. Shown in menzil.consumers.
create or replace function menzil.feed_advance(p_consumer text, p_feed text, p_xid text, p_row_id bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._check_feed(p_feed);
  perform menzil._check_name(p_consumer);
  insert into menzil.feed_consumer as c (name, feed, xid, row_id) values (p_consumer, p_feed, p_xid::xid8, p_row_id)
  on conflict (name) do update set feed = excluded.feed, xid = excluded.xid, row_id = excluded.row_id, advanced_at = clock_timestamp();
end $$;

-- Forgets a reader. Returns whether there was one.
create or replace function menzil.feed_forget(p_consumer text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  delete from menzil.feed_consumer c where c.name = p_consumer;
  return found;
end $$;
