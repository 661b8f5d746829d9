-- Gives up sends that no driver touched for so long, because their drivers died, and takes away staging tables that belong to
-- no open send. One that is being written or committed right now is left alone. Returns how many sends and tables went.
create or replace function menzil.reap_bulk_sends(p_older_than interval default '1 day', p_limit integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_row record;
  v_count integer := 0;
begin
  if p_older_than is null then
    perform menzil._refuse_null('An age');
  elsif p_older_than not between interval '0' and interval '100 years' then
    perform menzil._refuse_value('An age is not negative, and not above 100 years.', 'Use ''1 day''.');
  end if;
  perform menzil._check_limit(p_limit, 1000000);
  for v_row in
    select s.send_id, s.staging from menzil.bulk_send s where s.state = 'open' and s.touched_at < clock_timestamp() - p_older_than
     order by s.touched_at limit p_limit for update skip locked
  loop
    if menzil._drop_staging(v_row.staging) then
      delete from menzil.bulk_send s where s.send_id = v_row.send_id;
      v_count := v_count + 1;
    end if;
  end loop;
  for v_row in
    select c.relname from pg_class c
     where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'r' and c.relname ~ '^bulk_staging_[0-9]+$'
       and not exists (select 1 from menzil.bulk_send s where s.state = 'open' and s.staging = c.relname)
     limit greatest(p_limit - v_count, 0)
  loop
    if menzil._drop_staging(v_row.relname) then
      v_count := v_count + 1;
    end if;
  end loop;
  return v_count;
end $$;
