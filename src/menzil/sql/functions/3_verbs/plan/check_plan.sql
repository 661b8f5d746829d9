-- What a plan is about, checked, in one spelling: `channel` for a channel or endpoint, times in UTC, ids ascending and each once.
create or replace function menzil._check_plan(p_kind text, p_filter jsonb) returns jsonb
language plpgsql stable set timezone = 'UTC' set datestyle = 'ISO' as $$
declare
  v_kinds constant text[] := '{redrive,replay,cancel}';
  v_known text[];
  v_filter jsonb := jsonb_strip_nulls(p_filter);
  v_wrong text;
begin
  if p_kind is null then
    perform menzil._refuse_null('A kind of plan');
  elsif p_kind <> all (v_kinds) then
    perform menzil._refuse_value(format('%s is not a kind of plan.', quote_literal(menzil._shown(p_kind))),
      concat_ws(' ', 'Did you mean ' || menzil._nearest_word(p_kind, v_kinds) || '?', 'Use redrive, replay or cancel.'));
  elsif p_filter is null then
    perform menzil._refuse_null('A filter');
  elsif jsonb_typeof(p_filter) <> 'object' then
    perform menzil._refuse_value('The filter of a plan must be a JSON object.', 'Pass an object such as {"channel": "billing"}.');
  end if;
  v_known := case p_kind when 'redrive' then '{channel,endpoint,cause_hash,since,until,ids,all}'::text[]
                         when 'replay' then '{channel,endpoint,since,until,status,ids}'
                         else '{channel,endpoint,since,until,ids,all}' end;
  select k.key into v_wrong from jsonb_object_keys(p_filter) k(key) where k.key <> all (v_known) order by 1 limit 1;
  if v_wrong is not null then
    perform menzil._refuse_value(format('The filter of a %s has no key %s.', p_kind, quote_literal(menzil._shown(v_wrong))),
      concat_ws(' ', 'Did you mean ' || menzil._nearest_word(v_wrong, v_known) || '?', format('Use %s.', array_to_string(v_known, ', '))));
  elsif v_filter = '{}' then
    perform menzil._refuse_value('The filter of the plan is empty.', case p_kind
      when 'replay' then 'Name a channel, and with since and until a range of time; or give ids.'
      when 'redrive' then 'Name a channel, a cause_hash or ids; {"all": true} takes every failed dead letter.'
      else 'Name a channel, or give ids; {"all": true} takes every message that waits.' end);
  elsif v_filter ?& array['channel', 'endpoint'] then
    perform menzil._refuse_value('The filter names a channel and an endpoint.', 'Give one of them: they mean the same.');
  elsif v_filter ? 'ids' and v_filter - 'ids' <> '{}' then
    perform menzil._refuse_value('Ids and other keys of a filter say different things.', 'Give ids alone, or leave them out.');
  elsif v_filter ? 'all' and (v_filter -> 'all' <> 'true' or v_filter ?| array['channel', 'endpoint']) then
    perform menzil._refuse_value('The key all of a filter is true, and names no channel beside it.', 'Give {"all": true}, or name a channel instead.');
  elsif not v_filter ?| array['channel', 'endpoint', 'ids', 'all', 'cause_hash'] then
    perform menzil._refuse_value('The filter does not say of which channel.',
      case when p_kind = 'replay' then 'Name a channel or give ids.' else 'Name a channel, or add {"all": true} for every channel.' end);
  end if;
  return menzil._check_plan_values(p_kind, v_filter);
end $$;

create or replace function menzil._check_plan_values(p_kind text, p_filter jsonb) returns jsonb
language plpgsql stable set timezone = 'UTC' set datestyle = 'ISO' as $$
declare
  v_filter jsonb := p_filter;
  v_statuses constant text[] := '{completed,failed,expired,cancelled}';
  v_key text;
  v_at timestamptz;
begin
  select k.key into v_key from jsonb_each(v_filter) k where k.key in ('channel', 'endpoint', 'cause_hash', 'since', 'until', 'status') and jsonb_typeof(k.value) <> 'string' limit 1;
  if v_key is not null then
    perform menzil._refuse_value(format('The key %s of a filter must be a text.', v_key), 'Write it in quotes.');
  end if;
  if v_filter ? 'endpoint' then
    v_filter := v_filter - 'endpoint' || jsonb_build_object('channel', v_filter -> 'endpoint');
  end if;
  if v_filter ->> 'cause_hash' !~ '^[0-9a-f]{12}$' then
    perform menzil._refuse_value(format('%s is not the hash of a cause.', quote_literal(menzil._shown(v_filter ->> 'cause_hash'))),
      'It has 12 hexadecimal digits: menzil.dlq_causes() lists them as cause_hash.');
  elsif v_filter ->> 'status' <> all (v_statuses) then
    perform menzil._refuse_value(format('%s is not a status of the archive.', quote_literal(menzil._shown(v_filter ->> 'status'))),
      concat_ws(' ', 'Did you mean ' || menzil._nearest_word(v_filter ->> 'status', v_statuses) || '?', format('Use %s.', array_to_string(v_statuses, ', '))));
  end if;
  foreach v_key in array array['since', 'until'] loop
    if v_filter ? v_key then
      begin
        v_at := (v_filter ->> v_key)::timestamptz;
      exception when data_exception then
        perform menzil._refuse_value(format('The key %s of a filter is not a time: %s.', v_key, quote_literal(menzil._shown(v_filter ->> v_key))),
          'Write it as ISO 8601, such as 2026-01-31T12:00:00Z.');
      end;
      if v_at not between '0001-01-02' and '9999-12-31' then
        perform menzil._refuse_value('The times of a filter lie in the years 1 to 9999.', 'Leave the time out instead of using infinity.');
      end if;
      v_filter := v_filter || jsonb_build_object(v_key, to_char(v_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'));
    end if;
  end loop;
  if (v_filter ->> 'since')::timestamptz >= (v_filter ->> 'until')::timestamptz then
    perform menzil._refuse_value('The range of the filter ends before it begins.', 'since is part of the range, until is not; give a later until.');
  end if;
  if v_filter ? 'ids' then
    if jsonb_typeof(v_filter -> 'ids') <> 'array' or jsonb_array_length(v_filter -> 'ids') not between 1 and 10000
       or exists (select 1 from jsonb_array_elements(v_filter -> 'ids') i(id)
                   where jsonb_typeof(i.id) <> 'number' or i.id #>> '{}' !~ '^[0-9]{1,19}$' or (i.id #>> '{}')::numeric not between 1 and 9223372036854775807) then
      perform menzil._refuse_value('The ids of a filter are a list of 1 to 10000 whole numbers.',
        case when p_kind = 'redrive' then 'They are those of dead letters, as menzil.dlq lists them.' else 'They are those of messages.' end);
    end if;
    v_filter := jsonb_build_object('ids', (select jsonb_agg(distinct (i.id #>> '{}')::bigint) from jsonb_array_elements(v_filter -> 'ids') i(id)));
  end if;
  return v_filter;
end $$;
