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
