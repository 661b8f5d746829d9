-- Why a send is refused: every row is looked at by itself, with the rules of a single send, and the first few bad ones are
-- named. Slow, and only on the way to a refusal. Payloads are not shown.
create or replace function menzil._refuse_rows(p_bulk menzil.bulk) returns void
language plpgsql as $$
declare
  v_bad record;
begin
  execute format($sql$
    select count(*), count(distinct q.fault) as kinds, min(q.fault) as fault, (array_agg(q.hint order by q.place))[1] as hint,
           string_agg(format('Row %%s%%s: %%s', q.place, q.label, left(q.reason, 300)), ' ' order by q.place) filter (where q.nth <= 3) as shown
      from (select t.base + s.n as place, f.fault, f.reason, f.hint, row_number() over (order by t.base + s.n) as nth,
                   concat(' to ' || quote_literal(left(menzil._shown(s.endpoint), 60)),
                          ' with ordering key ' || quote_literal(left(menzil._shown(s.ordering_key), 60)),
                          ' with idempotency key ' || quote_literal(left(menzil._shown(s.idempotency_key), 60))) as label
              from menzil.%I s join unnest($1, $2) t(token, base) on t.token = s.token
              left join menzil.channel c on c.name = s.endpoint and c.dropped_at is null and c.enabled and c.released_at is null
              cross join lateral menzil._row_fault(c.id is not null, s.endpoint, s.payload, s.content, s.priority, s.ordering_key, s.idempotency_key,
                s.correlation_id, s.scheduled_at, s.expires_at, s.headers, s.metadata, $3) f
             where f.fault is not null) q$sql$, p_bulk.staging)
    into v_bad using p_bulk.tokens, p_bulk.bases, p_bulk.max_payload_size;
  if v_bad.count > 0 then
    raise exception using errcode = case when v_bad.kinds = 1 then v_bad.fault else '22023' end,
      message = format('%s of %s rows cannot be sent, so none was. %s', v_bad.count, p_bulk.rows, v_bad.shown),
      hint = coalesce(v_bad.hint, 'Correct these rows, or leave them out.');
  end if;
end $$;

-- What is wrong with one row: the SQLSTATE, sentence and hint that a single send would give; nulls when it is fine.
-- Called for every row of a send: expressions, and a statement only where something is wrong or special.
create or replace function menzil._row_fault(
  p_open boolean, p_endpoint text, p_payload text, p_content bytea, p_priority integer, p_ordering_key text, p_idempotency_key text, p_correlation_id text,
  p_scheduled_at timestamptz, p_expires_at timestamptz, p_headers text, p_metadata text, p_max_size integer,
  out fault text, out reason text, out hint text
)
language plpgsql stable as $$
declare
  v_channel menzil.channel;
  v_cast text;
  v_payload jsonb;
  v_correlation uuid;
  v_headers jsonb;
  v_metadata jsonb;
  v_size bigint := octet_length(p_content);
begin
  if not p_open then
    v_channel := menzil._channel_for(p_endpoint);
    perform menzil._refuse_closed(v_channel.name, v_channel.released_at is not null);
  elsif p_payload is null and p_content is null then
    perform menzil._refuse_null('A payload');
  elsif p_payload is not null and p_content is not null then
    perform menzil._refuse_value('A message has a payload or a binary content, not both.', 'Leave one of them NULL.');
  elsif p_priority not between 0 and 10 then
    perform menzil._refuse_priority(p_priority);
  end if;
  v_cast := 'payload is not JSON that PostgreSQL can store';
  v_payload := p_payload;
  v_size := coalesce(v_size, octet_length(v_payload::text));
  v_cast := 'correlation id is not a UUID';
  v_correlation := p_correlation_id;
  v_cast := 'headers are not JSON';
  v_headers := p_headers;
  v_cast := 'metadata is not JSON';
  v_metadata := p_metadata;
  v_cast := null;
  if v_size > p_max_size then
    perform menzil._refuse_size(v_size, p_max_size);
  end if;
  if coalesce(p_scheduled_at, p_expires_at) is not null or coalesce(p_ordering_key, p_idempotency_key) is not null
     or coalesce(v_headers, v_metadata) is not null then
    perform menzil._check_options(p_scheduled_at, p_expires_at, p_ordering_key, p_idempotency_key, v_headers, v_metadata, p_max_size);
  end if;
exception when others then
  get stacked diagnostics fault = returned_sqlstate, reason = message_text, hint = pg_exception_hint;
  if v_cast is not null then
    fault := '22023';
    reason := format('The %s.', v_cast);
  end if;
  hint := nullif(hint, '');
end $$;
