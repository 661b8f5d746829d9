-- Checks of the options that most messages do not have.
create or replace function menzil._check_options(
  p_scheduled_at timestamptz, p_expires_at timestamptz, p_ordering_key text, p_idempotency_key text,
  p_headers jsonb, p_metadata jsonb, p_max_size integer
) returns void
language plpgsql as $$
begin
  if p_scheduled_at not between '0001-01-02' and '9999-12-31' or p_expires_at not between '0001-01-02' and '9999-12-31' then
    perform menzil._refuse_value('A schedule or expiry must lie in the years 1 to 9999.', 'Leave the time out instead of using infinity.');
  elsif p_expires_at <= coalesce(p_scheduled_at, '-infinity') then
    perform menzil._refuse_value('The message would expire before it is due.', 'Let it expire later than its schedule.');
  end if;
  perform menzil._check_key(p_ordering_key, 'ordering key');
  perform menzil._check_key(p_idempotency_key, 'idempotency key');
  if p_headers is not null then
    perform menzil._check_headers(p_headers);
  end if;
  if jsonb_typeof(p_metadata) <> 'object' then
    perform menzil._refuse_value('The metadata must be a JSON object.', 'Pass an object such as {"tenant": "a"}.');
  end if;
  if octet_length(p_headers::text) > p_max_size then
    perform menzil._refuse_size(octet_length(p_headers::text), p_max_size, 'The headers have');
  elsif octet_length(p_metadata::text) > p_max_size then
    perform menzil._refuse_size(octet_length(p_metadata::text), p_max_size, 'The metadata has');
  end if;
end $$;
