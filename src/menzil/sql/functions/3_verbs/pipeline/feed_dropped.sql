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
