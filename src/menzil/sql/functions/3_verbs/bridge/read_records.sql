-- Records with all their checks behind them: each has a payload or a content, or a fault. Nothing is written here.
-- All are read at once, in one step; only if that fails is each read alone, to find out which it was.
create or replace function menzil._read_records(
  p_bridge menzil.bridge, p_texts text[], p_contents bytea[], p_faults text[], p_ordering_keys text[], p_idempotency_keys text[],
  p_correlation_ids uuid[], p_headers text[], p_metadatas text[]
) returns menzil.incoming[]
language plpgsql as $$
declare
  v_most integer := (select s.max_payload_size from menzil.setting_value s);
  v_records menzil.incoming[];
begin
  begin
    v_records := array(
      select row(case when u.fault is null then u.text::jsonb end, u.content, u.fault, u.ordering_key, u.idempotency_key,
                 u.correlation_id, u.headers::jsonb, u.metadata::jsonb, u.text)::menzil.incoming
        from unnest(p_texts, p_contents, p_faults, p_ordering_keys, p_idempotency_keys, p_correlation_ids, p_headers, p_metadatas)
             with ordinality u(text, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, n) order by u.n);
    perform menzil._check_record(p_bridge, r, v_most) from unnest(v_records) r where r.fault is null;
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    v_records := array(
      select menzil._read_record(p_bridge, u.text, u.content, u.fault, u.ordering_key, u.idempotency_key, u.correlation_id, u.headers, u.metadata, v_most)
        from unnest(p_texts, p_contents, p_faults, p_ordering_keys, p_idempotency_keys, p_correlation_ids, p_headers, p_metadatas)
             with ordinality u(text, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, n) order by u.n);
  end;
  return v_records;
end $$;

-- One record, or what is wrong with it.
create or replace function menzil._read_record(
  p_bridge menzil.bridge, p_text text, p_content bytea, p_fault text, p_ordering_key text, p_idempotency_key text,
  p_correlation_id uuid, p_headers text, p_metadata text, p_most integer
) returns menzil.incoming
language plpgsql as $$
declare
  v_record menzil.incoming;
  v_fault text;
begin
  begin   -- these are made by the process that reads the source, so a fault of theirs is no fault of the record
    v_record := row(null, p_content, p_fault, p_ordering_key, p_idempotency_key, p_correlation_id, p_headers::jsonb, p_metadata::jsonb, p_text);
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    perform menzil._refuse_value('The headers and the metadata of each record must be JSON.', 'Pass objects as text, such as {"X-Tenant": "a"}.');
  end;
  if p_fault is not null then
    return v_record;
  end if;
  begin
    v_record.payload := p_text::jsonb;
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    get stacked diagnostics v_fault = pg_exception_detail;   -- what it quotes is a piece of the body, or all of it
    v_record.fault := format('The body is not JSON that can be stored: %s', left(regexp_replace(coalesce(nullif(v_fault, ''), sqlerrm), '".*"', '"..."'), 500));
    return v_record;
  end;
  begin
    perform menzil._check_record(p_bridge, v_record, p_most);
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    v_record.fault := sqlerrm;
  end;
  return v_record;
end $$;

-- Refuses what a send or a publish would refuse.
create or replace function menzil._check_record(p_bridge menzil.bridge, p_record menzil.incoming, p_most integer) returns void
language plpgsql as $$
declare
  v_size bigint := coalesce(octet_length(p_record.payload::text), octet_length(p_record.content));
  v_schema jsonb;
begin
  if p_record.payload is null and p_record.content is null then
    perform menzil._refuse_value('The record has no body.', 'A tombstone of Kafka is such a record.');
  elsif p_record.payload is null and p_bridge.event_type is not null then
    perform menzil._refuse_value('An event needs a JSON body, and this one is bytes.', 'Send the records to a channel.');
  elsif v_size > p_most then
    perform menzil._refuse_size(v_size, p_most);
  end if;
  perform menzil._check_options(null, null, p_record.ordering_key, p_record.idempotency_key, p_record.headers, p_record.metadata, p_most);
  if p_bridge.event_type is not null then
    select t.schema #> '{}' into v_schema from menzil.event_type t where t.name = p_bridge.event_type;
    if v_schema is not null then
      perform menzil._check_event(p_bridge.event_type, v_schema, p_record.payload);
    end if;
  end if;
end $$;
