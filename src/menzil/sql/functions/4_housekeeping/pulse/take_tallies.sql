-- Takes what workers have measured, at most p_limit tallies.
create or replace function menzil._take_tallies(p_limit integer) returns menzil.pulse_news[]
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_news menzil.pulse_news[];
begin
  with taken as (
    delete from menzil.pulse_tally t where t.ctid = any (array(select o.ctid from menzil.pulse_tally o limit p_limit for update skip locked)) returning t.*
  )
  select array_agg(row(q.channel_id, q.at, 'try', q.bucket, q.n)::menzil.pulse_news) into v_news
    from (select t.channel_id, t.at, u.bucket, sum(u.n)::bigint as n from taken t cross join lateral unnest(t.try_ms) with ordinality u(n, bucket)
           where u.n > 0 group by 1, 2, 3) q;
  return coalesce(v_news, '{}');
end $$;
