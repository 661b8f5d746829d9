-- Headers travel on the wire: names are tokens, values are single lines of text. What no request could carry is refused here, at the
-- send: at the delivery it would make a dead letter.
create or replace function menzil._check_headers(p_headers jsonb) returns void
language plpgsql immutable as $$
declare
  v_name text;
  v_value jsonb;
  v_seen text := ',';
begin
  if jsonb_typeof(p_headers) <> 'object' then
    perform menzil._refuse_value('The headers must be a JSON object.', 'Pass an object such as {"X-Tenant": "a"}.');
  end if;
  for v_name, v_value in select h.key, h.value from jsonb_each(p_headers) h loop
    if v_name !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]{1,255}$' then
      perform menzil._refuse_value(format('%s is not a header name.', quote_literal(menzil._shown(v_name))), 'Use letters, digits and dashes.');
    elsif menzil._is_forbidden_header(v_name) then
      perform menzil._refuse_value(format('A message may not set the header %s.', quote_literal(v_name)),
        'It belongs to the connection or is set by menzil itself; leave it out.');
    elsif jsonb_typeof(v_value) <> 'string' or v_value #>> '{}' ~ '[[:cntrl:]]' or octet_length(v_value #>> '{}') > 8192 then
      perform menzil._refuse_value(format('The value of header %s must be one line of text of at most 8192 bytes.', quote_literal(v_name)),
        'Pass a string without line breaks.');
    elsif position(',' || lower(v_name collate "C") || ',' in v_seen) > 0 then   -- a name has no comma
      perform menzil._refuse_value(format('The header %s is given twice.', quote_literal(v_name)), 'Header names do not distinguish upper and lower case.');
    end if;
    -- A statement for all names at once takes longer than all the rest, where there are a few; a long text takes longer where there are many.
    if length(v_seen) < 4096 then
      v_seen := v_seen || lower(v_name collate "C") || ',';
    end if;
  end loop;
  if length(v_seen) >= 4096 then
    select min(h.key) into v_name from jsonb_object_keys(p_headers) h(key) group by lower(h.key collate "C") having count(*) > 1 limit 1;
    if found then
      perform menzil._refuse_value(format('The header %s is given twice.', quote_literal(v_name)), 'Header names do not distinguish upper and lower case.');
    end if;
  end if;
end $$;
