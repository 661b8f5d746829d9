-- Dead letters counted: by endpoint, and by what went wrong.

-- Failed dead letters of one endpoint, or of all, grouped by cause, the most frequent first.
create or replace function menzil.dlq_causes(p_endpoint_name text default null, p_limit integer default 100) returns table (
  endpoint_name text, error_class text, cause text, failed_count bigint, oldest_failed_at timestamptz, newest_failed_at timestamptz, sample_dlq_id bigint
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set jit = off as $$
#variable_conflict use_column
declare
  v_channels integer[];
begin
  perform menzil._check_limit(p_limit, 10000);
  if p_endpoint_name is not null then
    -- Also of those that are gone: their dead letters are still there.
    v_channels := array(select c.id from menzil.channel c where c.name = p_endpoint_name);
    perform menzil._refuse_unknown(p_endpoint_name) where v_channels = '{}';
  end if;
  return query
    select c.name, d.error_class, d.cause, sum(d.letters)::bigint, min(d.oldest), max(d.newest), max(d.sample)
      from (select o.*, menzil._error_cause(o.outline) as cause,
                   case when o.outline ~ E'^\\s*(\\[PERMANENT\\]\\s*)?\\[DISABLE\\]' then 'DISABLE' when o.outline ~ E'^\\s*\\[PERMANENT\\]' then 'PERMANENT'
                        else 'RETRYABLE' end as error_class
              -- Outlines are quickly made and few: only they are looked at more closely.
              from (select l.channel_id, menzil._error_outline(l.last_error) as outline, count(*) as letters, min(l.failed_at) as oldest,
                           max(l.failed_at) as newest, max(l.id) as sample
                      from menzil.dead_letter l
                     where l.status = 'failed' and (v_channels is null or l.channel_id = any (v_channels)) group by 1, 2) o) d
      join menzil.channel c on c.id = d.channel_id
     group by c.name, d.error_class, d.cause
     order by 4 desc, 6 desc, c.name, d.cause limit p_limit;
end $$;
