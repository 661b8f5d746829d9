-- How many messages come to each channel that has a max_size.
create or replace function menzil._bulk_coming(p_bulk menzil.bulk) returns bigint[]
language plpgsql as $$
declare
  v_coming bigint[] := p_bulk.coming;
begin
  if p_bulk.keyed then
    execute format($sql$
      select array_agg(u.count - (select count(*) from menzil.%I k where k.repeat and k.channel_id = u.id) order by u.i)
        from unnest($1, $2) with ordinality u(id, count, i)$sql$, p_bulk.staging || '_keys')
      into v_coming using p_bulk.limited, p_bulk.coming;
  end if;
  return v_coming;
end $$;
