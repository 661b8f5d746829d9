-- Refuses names that a person could not type or read back.
create or replace function menzil._check_name(p_name text) returns void
language plpgsql immutable as $$
begin
  if p_name is null then
    raise exception using errcode = '22004', message = 'A name is needed, NULL was given.', hint = 'Pass the name of the channel or endpoint.';
  elsif p_name = '' or length(p_name) > 200 then
    raise exception using errcode = '22023', message = format('A name has 1 to 200 characters, this one has %s.', length(p_name)),
      hint = 'Choose a shorter, non-empty name.';
  elsif p_name ~ '[[:cntrl:]]' then
    raise exception using errcode = '22023', message = 'A name may not contain control characters.', hint = 'Use letters, digits, dots and dashes.';
  elsif p_name ~ '^[[:space:]]|[[:space:]]$' then
    raise exception using errcode = '22023', message = 'A name may not begin or end with a space.', hint = 'Leave the space out.';
  end if;
end $$;
