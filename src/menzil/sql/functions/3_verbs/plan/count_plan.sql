-- How many messages a plan is about, by channel. lows and highs are the first and last id that a replay has to look at. exact is
-- false when counting would have taken more than about 2 seconds: the rest is estimated then.
create or replace function menzil._count_plan(
  p_kind text, p_filter jsonb, p_top bigint, p_at timestamptz,
  out total bigint, out exact boolean, out channels integer[], out counts bigint[], out lows bigint[], out highs bigint[]
)
language plpgsql set jit = off as $$
declare
  v_until timestamptz := clock_timestamp() + interval '2 s';
  v_since_at timestamptz := coalesce((p_filter ->> 'since')::timestamptz, '-infinity');
  v_until_at timestamptz := coalesce((p_filter ->> 'until')::timestamptz, 'infinity');
  v_ids bigint[] := case when p_filter ? 'ids' then array(select (i.id)::bigint from jsonb_array_elements_text(p_filter -> 'ids') i(id)) end;
  v_channel menzil.channel;
  v_part record;
begin
  channels := '{}';
  counts := '{}';
  lows := '{}';
  highs := '{}';
  exact := true;
  if p_filter ? 'channel' then
    -- The one that is there, or the last that was.
    select c.* into v_channel from menzil.channel c where c.name = p_filter ->> 'channel' order by c.dropped_at desc nulls first limit 1;
    perform menzil._refuse_unknown(p_filter ->> 'channel') where not found;
    if p_kind <> 'cancel' then
      perform menzil._check_open(v_channel);
    end if;
  end if;
  if v_ids is not null then
    for v_part in select c.channel_id, c.n, c.low, c.high from menzil._count_ids(p_kind, v_ids) c order by 1 loop
      channels := channels || v_part.channel_id;
      counts := counts || v_part.n;
      lows := lows || v_part.low;
      highs := highs || v_part.high;
    end loop;
  else
    for v_part in
      select t.channel_id, c.n, c.exact, c.low, c.high
        from menzil._plan_channels(p_kind, v_channel.id) t
        cross join lateral menzil._count_one(p_kind, p_filter, t.channel_id, t.waiting, v_since_at, v_until_at, p_top, p_at, v_until) c
       order by 1
    loop
      continue when v_part.n = 0 and v_channel.id is null;
      channels := channels || v_part.channel_id;
      counts := counts || v_part.n;
      lows := lows || v_part.low;
      highs := highs || v_part.high;
      exact := exact and v_part.exact;
    end loop;
  end if;
  total := coalesce((select sum(u.n) from unnest(counts) u(n)), 0);
end $$;

-- The channel of a plan, or those that a plan about all of them reaches. waiting is what waits there, where a cancel asks for it.
create or replace function menzil._plan_channels(p_kind text, p_channel_id integer) returns table (channel_id integer, waiting bigint)
language plpgsql stable set jit = off as $$
begin
  if p_kind = 'cancel' then
    return query select coalesce(w.channel_id, p_channel_id), coalesce(w.n, 0) from (select 1) one
                   left join menzil._count_waiting(p_channel_id) w on true where w.n is not null or p_channel_id is not null;
  elsif p_channel_id is not null then
    return query select p_channel_id, null::bigint;
  else
    return query select c.id, null::bigint from menzil.channel c
                  where c.enabled and c.released_at is null and c.dropped_at is null
                    and exists (select 1 from menzil.dead_letter d where d.channel_id = c.id and d.status = 'failed');
  end if;
end $$;

create or replace function menzil._count_one(
  p_kind text, p_filter jsonb, p_channel_id integer, p_waiting bigint, p_since timestamptz, p_until timestamptz, p_top bigint, p_at timestamptz,
  p_deadline timestamptz, out n bigint, out exact boolean, out low bigint, out high bigint
)
language plpgsql as $$
begin
  case p_kind
    when 'redrive' then
      select c.n, c.exact into n, exact from menzil._count_letters(p_channel_id, p_filter ->> 'cause_hash', p_since, p_until, p_top, p_deadline) c;
    when 'replay' then
      select c.n, c.exact, c.low, c.high into n, exact, low, high
        from menzil._count_ended(p_channel_id, p_filter ->> 'status', p_since, least(p_until, p_at), p_at, p_deadline) c;
    else
      n := p_waiting;
      exact := true;
      if p_filter ?| array['since', 'until'] then
        select c.n, c.exact into n, exact from menzil._count_waiting_between(p_channel_id, p_waiting, p_since, p_until) c;
      end if;
  end case;
end $$;

-- The given ids that a plan can do something with, by channel.
create or replace function menzil._count_ids(p_kind text, p_ids bigint[]) returns table (channel_id integer, n bigint, low bigint, high bigint)
language plpgsql set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  if p_kind = 'redrive' then
    return query
      select d.channel_id, count(*), null::bigint, null::bigint
        from unnest(p_ids) u(id) cross join lateral (select d.channel_id from menzil.dead_letter d where d.id = u.id and d.status = 'failed' offset 0) d group by 1;
  elsif p_kind = 'replay' then
    return query
      select m.channel_id, count(*), min(m.id), max(m.id)
        from menzil._ends_among(p_ids) e
        cross join lateral (select m.channel_id, m.id from menzil.message m where m.id = e.id and (m.payload is not null or m.content is not null) limit 1 offset 0) m
       group by 1;
  else
    return query
      select m.channel_id, count(*), null::bigint, null::bigint
        from unnest(p_ids) u(id) cross join lateral (select m.channel_id from menzil.message m where m.id = u.id limit 1 offset 0) m
       where (u.id in (select e.id from menzil._ends_among(p_ids) e)) is not true and menzil._lease_of(u.id) is null
       group by 1;
  end if;
end $$;
