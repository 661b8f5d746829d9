-- The patterns of the setting redact as they are stored, or a refusal. The grammar is the one of menzil/model/redact_rules.py, and a
-- test compares the two: a pattern that Python cannot read would hide everything.
create or replace function menzil._redact_patterns(p_text text, p_hint text) returns text
language plpgsql immutable as $$
declare
  -- A step of a path: ..name, .name, [*], [7], ["any name"] or ['any name'].
  v_path constant text := E'^\\$(?:\\.\\.[^].["''$ \\t\\n]+|\\.[^].["''$]+|\\[(?:\\*|[0-9]+)\\]|\\["[^"\\n]+"\\]|\\[''[^''\\n]+''\\])*';
  v_parts text[] := '{}';
  v_part text;
  v_open text := '';
  v_next text;
  v_rest text := p_text;
begin
  -- Commas and line ends separate patterns, except between brackets with quotes.
  while v_rest <> '' loop
    v_next := coalesce(substring(v_rest from E'^(?:\\["[^"\\n]*"\\]|\\[''[^''\\n]*''\\])'), substring(v_rest from E'^[^],[\\n]+'), left(v_rest, 1));
    v_rest := substr(v_rest, length(v_next) + 1);
    if v_next in (',', E'\n') then
      v_parts := v_parts || v_open;
      v_open := '';
    else
      v_open := v_open || v_next;
    end if;
  end loop;
  v_parts := array(select btrim(u.part, E' \t\n') from unnest(v_parts || v_open) with ordinality u(part, n) where btrim(u.part, E' \t\n') <> '' order by u.n);
  foreach v_part in array v_parts loop
    if left(v_part, 1) = '$' then
      v_rest := substr(v_part, length(substring(v_part from v_path)) + 1);
      if v_rest <> '' then
        perform menzil._refuse_value(format('%s is not a JSON path: it breaks off at %s.', quote_literal(menzil._shown(v_part)), quote_literal(menzil._shown(v_rest))), p_hint);
      end if;
    elsif v_part <> '*' and translate(v_part, '-_ *', '') = '' or v_part ~ E'\\[["'']' then
      perform menzil._refuse_value(format('%s is not a pattern of key names.', quote_literal(menzil._shown(v_part))), p_hint);
    end if;
  end loop;
  return array_to_string(v_parts, ', ');
end $$;
