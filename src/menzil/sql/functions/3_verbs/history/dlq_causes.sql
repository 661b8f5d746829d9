-- Dead letters counted: by endpoint, and by what went wrong.

-- Failed dead letters of one endpoint, or of all, grouped by cause, the most frequent first. Letters are counted from an index; the
-- text of a cause is read from one letter of each.
drop function if exists menzil.dlq_causes(text, integer);
create or replace function menzil.dlq_causes(p_endpoint_name text default null, p_limit integer default 100) returns table (
  endpoint_name text, error_class text, cause text, failed_count bigint, oldest_failed_at timestamptz, newest_failed_at timestamptz, sample_dlq_id bigint,
  cause_hash text
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
    select c.name, d.error_class, d.cause, sum(d.letters)::bigint, min(d.oldest), max(d.newest), max(d.sample), d.cause_hash
      from (select q.channel_id, l.error_class, l.cause, q.cause_hash, q.letters, q.oldest, q.newest, q.sample
              from (select l.channel_id, l.cause_hash, count(*) as letters, min(l.failed_at) as oldest, max(l.failed_at) as newest, max(l.id) as sample
                      from menzil.dead_letter l
                     where l.status = 'failed' and l.cause_hash is not null and (v_channels is null or l.channel_id = any (v_channels)) group by 1, 2) q
              cross join lateral (select l.error_class, l.cause from menzil.dead_letter l where l.id = q.sample offset 0) l
            union all
            -- Letters that the job causes has not come to. Outlines are quickly made and few: only they are looked at more closely.
            select q.channel_id, e.error_class, e.cause, e.cause_hash, q.letters, q.oldest, q.newest, q.sample
              from (select l.channel_id, menzil._error_outline(l.last_error) as outline, count(*) as letters, min(l.failed_at) as oldest,
                           max(l.failed_at) as newest, max(l.id) as sample
                      from menzil.dead_letter l
                     where l.status = 'failed' and l.cause_hash is null and (v_channels is null or l.channel_id = any (v_channels)) group by 1, 2) q
              cross join lateral menzil._cause_of_outline(q.outline) e) d
      join menzil.channel c on c.id = d.channel_id
     group by c.name, d.error_class, d.cause, d.cause_hash
     order by 4 desc, 6 desc, c.name, d.cause limit p_limit;
end $$;
