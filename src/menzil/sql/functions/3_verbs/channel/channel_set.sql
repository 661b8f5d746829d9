-- Creates a channel or changes its limits while it runs; NULL means no limit. Endpoints are channels too.
create or replace function menzil.channel_set(
  p_name text,
  p_max_concurrency integer default null,
  p_max_size bigint default null,
  p_release_interval_ms bigint default 0,
  p_release_count integer default 1,
  p_on_dead text default 'continue'
) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_old menzil.channel;
  v_new menzil.channel;
begin
  perform menzil._refuse_replica();
  if not exists (select 1 from menzil.channel c where c.name = p_name and c.dropped_at is null) then   -- one that is there may be refused today
    perform menzil._check_name(p_name);
  end if;
  if p_max_concurrency < 1 or p_max_size < 1 then
    perform menzil._refuse_value('A limit must be at least 1.', 'Pass NULL for no limit, or pause the channel to stop it.');
  elsif p_release_interval_ms is null or p_release_count is null or p_on_dead is null then
    perform menzil._refuse_null('A release interval, a release count and a choice for dead letters');
  elsif p_release_interval_ms not between 0 and 86400000 or p_release_count < 1 then
    perform menzil._refuse_value('The release interval must be 0 ms to a day and the release count at least 1.', 'Use an interval of 0 for no rate limit.');
  elsif p_on_dead not in ('continue', 'block') then
    perform menzil._refuse_value(format('%s is not a choice for dead letters.', quote_literal(menzil._shown(p_on_dead))), 'Use ''continue'' or ''block''.');
  end if;
  loop
    select c.* into v_old from menzil.channel c where c.name = p_name and c.dropped_at is null for update;
    if found then
      perform menzil._refuse_closed(p_name, true) where v_old.released_at is not null;
      update menzil.channel c set max_concurrency = p_max_concurrency, max_size = p_max_size, release_interval_ms = p_release_interval_ms,
          release_count = p_release_count, on_dead = p_on_dead, updated_at = clock_timestamp()
       where c.id = v_old.id returning c.* into v_new;
      exit;
    end if;
    insert into menzil.channel (name, max_concurrency, max_size, release_interval_ms, release_count, on_dead)
      values (p_name, p_max_concurrency, p_max_size, p_release_interval_ms, p_release_count, p_on_dead)
      on conflict do nothing returning * into v_new;
    exit when found;
  end loop;
  if p_max_size is not null and v_old.max_size is null then
    perform menzil._count_size(v_new.id);
  end if;
  if v_old is distinct from v_new then
    perform menzil._event(case when v_old.id is null then 'channel.created' else 'channel.changed' end, 'channel', p_name,
      case when v_old.id is not null then menzil._limits_of(v_old) end, menzil._limits_of(v_new));
  end if;
end $$;

create or replace function menzil._limits_of(p_channel menzil.channel) returns jsonb
language sql stable as $$
  select jsonb_build_object('max_concurrency', p_channel.max_concurrency, 'max_size', p_channel.max_size,
    'release_interval_ms', p_channel.release_interval_ms, 'release_count', p_channel.release_count, 'on_dead', p_channel.on_dead)
$$;
