-- A value from outside as it may stand in a message: one line, not endless.
create or replace function menzil._shown(p_value text) returns text
language sql immutable parallel safe
return regexp_replace(left(p_value, 200), '[[:cntrl:]\u2028\u2029]', ' ', 'g');

-- The refusals that more than one function gives, each worded once.
create or replace function menzil._refuse_unknown(p_name text) returns void
language plpgsql as $$
begin
  if p_name is null then
    raise exception using errcode = '22004', message = 'A channel or endpoint name is needed, NULL was given.',
      hint = 'Pass the name of the channel or endpoint.';
  end if;
  raise exception using errcode = '42704', message = format('There is no channel or endpoint named %s.', quote_literal(menzil._shown(p_name))),
    hint = 'Create it with menzil.channel_set(name) or menzil.create_endpoint(name, protocol, config).';
end $$;

create or replace function menzil._refuse_closed(p_name text, p_released boolean) returns void
language plpgsql as $$
begin
  if p_released then
    raise exception using errcode = '55000', message = format('Channel %s is released and takes no new messages.', quote_literal(p_name)),
      hint = 'Call menzil.channel_set(name) once it has drained to open a new one.';
  end if;
  raise exception using errcode = '55000', message = format('Endpoint %s is disabled and refuses messages.', quote_literal(p_name)),
    hint = 'Call menzil.enable_endpoint(name), or pause it instead of disabling it to accept and hold messages.';
end $$;

create or replace function menzil._refuse_null(p_what text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '22004', message = format('%s is needed, NULL was given.', p_what), hint = 'Pass a value that is not NULL.';
end $$;

create or replace function menzil._refuse_size(p_size bigint, p_limit bigint) returns void
language plpgsql as $$
begin
  raise exception using errcode = '54000', message = format('The payload has %s bytes, the limit is %s.', p_size, p_limit),
    hint = 'Send a reference to a large object, or raise the setting max_payload_size.';
end $$;

create or replace function menzil._refuse_value(p_message text, p_hint text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '22023', message = p_message, hint = p_hint;
end $$;

create or replace function menzil._refuse_conflict(p_key text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '23505', message = format('Idempotency key ''%s'' conflict: same key with different payload', menzil._shown(p_key)),
    hint = 'Use a new key for a new payload, or send the first payload again.';
end $$;

create or replace function menzil._refuse_priority(p_priority integer) returns void
language plpgsql as $$
begin
  if p_priority is null then
    perform menzil._refuse_null('A priority');
  end if;
  perform menzil._refuse_value(format('Priority %s is out of range, it must be 0 to 10.', p_priority), 'Use 0 for normal work and up to 10 for urgent work.');
end $$;

-- Arrays of settles and lists are flat: the search for a NULL in them is PostgreSQL's own, which knows no other.
create or replace function menzil._refuse_shape() returns void
language plpgsql as $$
begin
  perform menzil._refuse_value('An array of one dimension is needed, this one has more.', 'Pass a flat list, such as array[1, 2, 3].');
end $$;

-- The limit of a janitor's round or a list.
create or replace function menzil._check_limit(p_limit integer, p_most integer) returns void
language plpgsql as $$
begin
  if p_limit is null then
    perform menzil._refuse_null('A limit');
  elsif p_limit not between 1 and p_most then
    perform menzil._refuse_value(format('A limit of %s is out of range, it must be 1 to %s.', p_limit, p_most), 'Call several times for more.');
  end if;
end $$;
