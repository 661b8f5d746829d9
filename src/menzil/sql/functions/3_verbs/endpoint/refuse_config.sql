-- The value itself is never repeated: it may be a secret that landed in the wrong place.
create or replace function menzil._refuse_config(p_path text, p_what text, p_hint text default null) returns void
language plpgsql immutable as $$
begin
  raise exception using errcode = '22023', message = format('In the endpoint config %s %s.', p_path, p_what),
    hint = coalesce(p_hint, case when p_what like 'is needed%' then 'Add it to the config.' end, 'Change the value, or leave the key out if the endpoint can do without it.');
end $$;
