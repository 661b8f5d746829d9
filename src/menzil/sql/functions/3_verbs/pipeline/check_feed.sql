create or replace function menzil._check_feed(p_feed text) returns void
language plpgsql as $$
begin
  if p_feed is null then
    perform menzil._refuse_null('The name of a feed');
  elsif p_feed not in ('archive', 'event_log') then
    perform menzil._refuse_value(format('There is no feed %s.', quote_literal(menzil._shown(p_feed))), 'Choose archive or event_log.');
  end if;
end $$;
