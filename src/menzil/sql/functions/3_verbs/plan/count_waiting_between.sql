-- Of n messages that wait in one channel, those created from p_since to before p_until: the share of 100,000 is taken for all.
create or replace function menzil._count_waiting_between(p_channel_id integer, p_n bigint, p_since timestamptz, p_until timestamptz, out n bigint, out exact boolean)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_most constant integer := 100000;
  v_looked record;
begin
  select count(*) as n, count(*) filter (where m.created_at >= p_since and m.created_at < p_until) as hits into v_looked
    from (select w.id from menzil._waiting_ids(p_channel_id) w(id) limit v_most) w
    cross join lateral (select m.created_at from menzil.message m where m.id = w.id limit 1 offset 0) m;
  exact := v_looked.n < v_most;
  n := case when exact then v_looked.hits else ceil(p_n::numeric * v_looked.hits / v_looked.n) end;
end $$;
