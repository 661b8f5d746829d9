-- Looks over the rows of a send once, without reading any JSON: are they all there, where do they go, what do they have.
create or replace function menzil._count_bulk(p_staging text, p_tokens text[], p_counts bigint[]) returns menzil.bulk
language plpgsql as $$
declare
  v_bulk menzil.bulk;
  v_limits menzil.setting_value;
  v_found record;
begin
  v_bulk.staging := p_staging;
  v_bulk.tokens := p_tokens;
  -- What stands before the rows of each token, so that a row's place is bases[token] + n.
  v_bulk.bases := array(select 1 + sum(u.count) over (order by u.i) - u.count from unnest(p_counts) with ordinality u(count, i) order by u.i);
  v_bulk.rows := coalesce((select sum(u.count) from unnest(p_counts) u(count)), 0);
  v_bulk.repeats := 0;
  if to_regclass(format('menzil.%I', p_staging)) is null then
    perform menzil._refuse_staged(v_bulk.rows, 0);
  end if;
  -- A new table has no statistics: without this the planner joins as if it were small.
  execute format('analyze menzil.%I (token, endpoint)', p_staging);
  select s.* into v_limits from menzil.setting_value s;
  execute format($sql$
    with g as materialized (
      select s.token, s.endpoint, count(*) as rows, min(s.n) as low, max(s.n) as high,
             bool_or((s.payload is null) = (s.content is null) or s.priority not between 0 and 10 or octet_length(s.content) > $2
               or octet_length(s.ordering_key) not between 1 and 1024 or octet_length(s.idempotency_key) not between 1 and 1024
               or s.scheduled_at not between '0001-01-02' and '9999-12-31' or s.expires_at not between '0001-01-02' and '9999-12-31'
               or s.expires_at <= s.scheduled_at) as bad,
             bool_or(s.scheduled_at is not null or s.expires_at is not null or s.ordering_key is not null) as special,
             min(coalesce(s.priority, 0)) as least, max(coalesce(s.priority, 0)) as most,
             bool_or(s.idempotency_key is not null) as keyed, bool_or(s.headers is not null or s.metadata is not null) as described,
             bool_or(s.replay_of is not null) as replays
        from menzil.%I s where s.token = any ($1) group by s.token, s.endpoint
    ), t as (
      select g.token, sum(g.rows) as rows, min(g.low) as low, max(g.high) as high from g group by g.token
    ), e as (
      select g.endpoint, sum(g.rows)::bigint as rows from g group by g.endpoint
    )
    select (select jsonb_agg(jsonb_build_array(u.count, coalesce(t.rows, 0))) from unnest($1, $3) u(token, count) left join t on t.token = u.token
             where u.count <> coalesce(t.rows, 0) or t.low <> 0 or t.high <> u.count - 1) as wrong,
           (select count(*) from e left join menzil.channel c on c.name = e.endpoint and c.dropped_at is null
             where c.id is null or not c.enabled or c.released_at is not null) as closed,
           (select array_agg(c.name order by c.id) from e join menzil.channel c on c.name = e.endpoint and c.dropped_at is null) as names,
           (select array_agg(c.id order by c.id) from e join menzil.channel c on c.name = e.endpoint and c.dropped_at is null) as channels,
           (select array_agg(e.rows order by c.id) from e join menzil.channel c on c.name = e.endpoint and c.dropped_at is null) as coming,
           bool_or(g.bad) as bad, bool_or(g.special) as special, bool_or(g.keyed) as keyed, bool_or(g.described) as described, bool_or(g.replays) as replays,
           min(g.least) as least, max(g.most) as most
      from g$sql$, p_staging)
    into v_found using p_tokens, v_limits.max_payload_size, p_counts;
  if v_found.wrong is not null then
    perform menzil._refuse_staged((v_found.wrong #>> '{0,0}')::bigint, (v_found.wrong #>> '{0,1}')::bigint);
  end if;
  v_bulk.special := coalesce(v_found.special, false);
  v_bulk.keyed := coalesce(v_found.keyed, false);
  v_bulk.described := coalesce(v_found.described, false);
  v_bulk.replays := coalesce(v_found.replays, false);
  v_bulk.names := v_found.names;
  v_bulk.channels := v_found.channels;
  -- Of those with a max_size, how many rows come to each.
  select coalesce(array_agg(c.id order by c.id), '{}'), coalesce(array_agg(u.count order by c.id), '{}') into v_bulk.limited, v_bulk.coming
    from unnest(v_found.channels, v_found.coming) u(id, count) join menzil.channel c on c.id = u.id where c.max_size is not null;
  v_bulk.max_payload_size := v_limits.max_payload_size;
  v_bulk.max_queue_size := v_limits.max_queue_size;
  if v_found.bad or v_found.closed > 0 then
    perform menzil._refuse_rows(v_bulk);
  end if;
  if v_found.least = v_found.most then
    v_bulk.rank := 10 - v_found.least;
  end if;
  return v_bulk;
end $$;

create or replace function menzil._refuse_staged(p_reported bigint, p_found bigint) returns void
language plpgsql as $$
begin
  raise exception using errcode = '55000',
    message = format('A task reports %s staged rows and %s are there, so nothing was sent.', p_reported, p_found),
    hint = 'The server was restarted, or the send was opened anew meanwhile: run it again with the same id.';
end $$;
