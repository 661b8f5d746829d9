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

-- A transaction id as the feed writes it, or a refusal.
create or replace function menzil._xid_from(p_xid text) returns xid8
language plpgsql immutable as $$
begin
  if p_xid is null then
    perform menzil._refuse_null('A transaction id');
  elsif p_xid !~ '^[0-9]{1,20}$' or p_xid::numeric > 18446744073709551615 then
    perform menzil._refuse_value(format('%s is not a transaction id.', quote_literal(menzil._shown(p_xid))),
      'Pass what menzil.feed_position(feed) or a row of the feed says.');
  end if;
  return p_xid::xid8;
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

-- Writes the log of the server out, up to what has been committed by now. Workers settle without waiting for that, so a
-- crash may undo an end that others have seen; a reader of the feed must not have been given it by then. An idle server
-- has nothing to write, and a standby knows only what is written.
create or replace function menzil._feed_harden() returns void
language plpgsql as $$
begin
  if pg_is_in_recovery() or pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() then
    return;
  elsif current_setting('server_version_num')::integer >= 170000 then
    perform pg_logical_emit_message(false, 'menzil', '', true);
  else
    perform set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off';
    perform pg_logical_emit_message(true, 'menzil', '');   -- written out when the transaction of the call commits
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
  perform menzil._feed_harden();         -- after the snapshot: whatever it calls complete is written then
  return query
    select pg_snapshot_xmin(v_snapshot)::text, coalesce((select max(d.id) from menzil.feed_drop d where d.feed = p_feed), 0),
           coalesce(v_last >= pg_snapshot_xmax(v_snapshot) and v_last is distinct from pg_current_xact_id_if_assigned(), false);
end $$;

-- When rows after this place were taken away by clean-ups later than p_last_drop; NULL when nothing was lost.
create or replace function menzil.feed_lost(p_feed text, p_xid text, p_row_id bigint, p_last_drop bigint) returns timestamptz
language plpgsql stable security definer
set search_path = pg_catalog, menzil, pg_temp as $$
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
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_xid xid8 := menzil._xid_from(p_xid);
begin
  perform menzil._check_feed(p_feed);
  perform menzil._check_name(p_consumer);
  if p_row_id is null then
    perform menzil._refuse_null('A row');
  end if;
  insert into menzil.feed_consumer as c (name, feed, xid, row_id) values (p_consumer, p_feed, v_xid, p_row_id)
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
