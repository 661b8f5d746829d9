-- Dead letters counted: by endpoint, and by what went wrong.

-- The working list in one line per endpoint. The times are those of the letters that still wait for a decision.
create or replace function menzil.dlq_summary() returns table (
  endpoint_name text, failed_count bigint, redriven_count bigint, oldest_failed_at timestamptz, newest_failed_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, menzil, pg_temp
set jit = off as $$
  select c.name, sum(d.failed)::bigint, sum(d.redriven)::bigint, min(d.oldest), max(d.newest)
    from (select l.channel_id, count(*) filter (where l.status = 'failed') as failed, count(*) filter (where l.status = 'redriven') as redriven,
                 min(l.failed_at) filter (where l.status = 'failed') as oldest, max(l.failed_at) filter (where l.status = 'failed') as newest
            from menzil.dead_letter l group by l.channel_id) d
    join menzil.channel c on c.id = d.channel_id
   group by c.name order by c.name
$$;

-- Failed dead letters of one endpoint, or of all, grouped by cause, the most frequent first.
create or replace function menzil.dlq_causes(p_endpoint_name text default null, p_limit integer default 100) returns table (
  endpoint_name text, error_class text, cause text, failed_count bigint, oldest_failed_at timestamptz, newest_failed_at timestamptz, sample_dlq_id bigint
)
language plpgsql stable security definer
set search_path = pg_catalog, menzil, pg_temp
set jit = off as $$
#variable_conflict use_column
declare
  v_channels integer[];
begin
  perform menzil._check_limit(p_limit, 10000);
  if p_endpoint_name is not null then
    -- Also of those that are gone: their dead letters are still there.
    v_channels := array(select c.id from menzil.channel c where c.name = p_endpoint_name);
    if v_channels = '{}' then
      perform menzil._refuse_unknown(p_endpoint_name);
    end if;
  end if;
  return query
    select c.name, d.error_class, d.cause, sum(d.letters)::bigint, min(d.oldest), max(d.newest), max(d.sample)
      from (select o.channel_id, menzil._error_class(o.outline) as error_class, menzil._error_cause(o.outline) as cause, o.letters, o.oldest,
                   o.newest, o.sample
              -- Outlines are quickly made and few: only they are looked at more closely.
              from (select l.channel_id, menzil._error_outline(l.last_error) as outline, count(*) as letters, min(l.failed_at) as oldest,
                           max(l.failed_at) as newest, max(l.id) as sample
                      from menzil.dead_letter l
                     where l.status = 'failed' and (v_channels is null or l.channel_id = any (v_channels)) group by 1, 2) o) d
      join menzil.channel c on c.id = d.channel_id
     group by c.name, d.error_class, d.cause
     order by 4 desc, 6 desc, c.name, d.cause limit p_limit;
end $$;

-- An error with zeros for the digits behind its first words (its class, and perhaps an HTTP status), and with marks for
-- quoted texts and UUIDs: quickly made, and its cause is the cause of the error.
create or replace function menzil._error_outline(p_error text) returns text
language plpgsql immutable parallel safe as $$
declare
  v_error text := left(p_error, 40) || translate(substr(p_error, 41, 960), '123456789', '000000000');
begin
  if strpos(v_error, '"') > 0 or strpos(v_error, '''') > 0 then
    v_error := regexp_replace(v_error, '"(\\.|[^"\\])*"|(?<!\w)''[^'']*''(?!\w)', '"..."', 'g');
  end if;
  if v_error like '%-____-____-____-____________%' then
    v_error := regexp_replace(v_error, '[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}', '#', 'g');
  end if;
  return coalesce(v_error, '');
end $$;

-- What an error is about, the same text for the same trouble: without its class, and with marks in place of numbers, ids,
-- times and quoted texts. The status of an HTTP answer stays: it is the trouble.
create or replace function menzil._error_cause(p_error text) returns text
language plpgsql immutable parallel safe as $$
declare
  v_error text := regexp_replace(menzil._error_outline(p_error), '^\s*(\[(RETRYABLE|PERMANENT|DISABLE)\]\s*)+', '');
  v_status text := coalesce(substring(v_error from '^HTTP [0-9]{3}\M'), '');
begin
  -- Times, ids, numbers: of those that fit at a place the longest is taken.
  v_error := regexp_replace(translate(substr(v_error, length(v_status) + 1), E'\n\r\t', '   '),
    '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(Z|[+-][0-9:]+)?|\m(0x)?[a-fA-F]*[0-9][[:xdigit:]]{7,}\M|[0-9]+([.,][0-9]+)*', '#', 'g');
  return v_status || left(rtrim(v_error), 200);
end $$;

-- RETRYABLE, PERMANENT or DISABLE, as the error says in its first words.
create or replace function menzil._error_class(p_error text) returns text
language sql immutable parallel safe
return case when p_error ~ '^\s*(\[PERMANENT\]\s*)?\[DISABLE\]' then 'DISABLE' when p_error ~ '^\s*\[PERMANENT\]' then 'PERMANENT' else 'RETRYABLE' end;
