create or replace function menzil._tell_failure(p_channel_id integer, p_failures menzil.failure[], p_leased_at timestamptz, p_now timestamptz) returns void
language plpgsql as $$
begin
  insert into menzil.line (channel_id, due_at, news, news_count, news_at, wait_until)
    select c.id, p_now, k.kind, k.count, p_leased_at, k.wait_until
      from menzil.channel c
      cross join (select case when f.permanent then 3 when not f.counts then 4 else 2 end as kind, count(*),
                         max(p_now + least(f.retry_after, interval '86400 s')) filter (where f.rest and f.retry_after > interval '0') as wait_until
                    from unnest(p_failures) f group by 1) k
     where c.id = p_channel_id and c.protocol is not null order by k.kind;
  if found then
    perform setval('menzil.failed_at', menzil._microseconds(p_now));
  end if;
end $$;
