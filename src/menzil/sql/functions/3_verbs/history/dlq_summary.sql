-- The working list in one line per endpoint. The times are those of the letters that still wait for a decision.
create or replace function menzil.dlq_summary() returns table (
  endpoint_name text, failed_count bigint, redriven_count bigint, oldest_failed_at timestamptz, newest_failed_at timestamptz
)
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp set jit = off as $$
  select c.name, sum(d.failed)::bigint, sum(d.redriven)::bigint, min(d.oldest), max(d.newest)
    from (select l.channel_id, count(*) filter (where l.status = 'failed') as failed, count(*) filter (where l.status = 'redriven') as redriven,
                 min(l.failed_at) filter (where l.status = 'failed') as oldest, max(l.failed_at) filter (where l.status = 'failed') as newest
            from menzil.dead_letter l group by l.channel_id) d
    join menzil.channel c on c.id = d.channel_id
   group by c.name order by c.name
$$;
