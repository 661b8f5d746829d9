-- Headers travel on the wire: names are tokens, values are single lines of text. What no request could carry is refused here, at the
-- send: at the delivery it would make a dead letter.
create or replace function menzil._check_headers(p_headers jsonb) returns void
language plpgsql immutable as $$
declare
  v_name text;
  v_value jsonb;
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
    end if;
  end loop;
end $$;
