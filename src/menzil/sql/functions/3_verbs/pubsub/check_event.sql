-- The schema comes unpacked (#> '{}'): a packed one would be unpacked again at every look.
create or replace function menzil._check_event(p_event_type text, p_schema jsonb, p_payload jsonb) returns void
language plpgsql immutable as $$
declare
  v_fault text[] := case when p_schema is not null then menzil._schema_fault(p_schema, p_payload, p_schema, 0) end;
begin
  if v_fault is not null then
    perform menzil._refuse_value(format('The payload of event %s breaks the rule %s at "%s".', quote_literal(menzil._shown(p_event_type)),
        menzil._shown(v_fault[1]), left(menzil._shown(v_fault[2]), 120)),
      'Correct the payload at that JSON pointer; the view menzil.event_types has the schema.');
  end if;
end $$;
