create or replace function menzil._sum_up_size(p_channel_id integer) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
begin
  with old as materialized (
    select s.ctid as at from menzil.size_change s where s.channel_id = p_channel_id limit 1000 for update skip locked
  ), gone as (
    delete from menzil.size_change s where s.ctid = any (array(select o.at from old o)) returning s.change
  )
  insert into menzil.size_change (channel_id, change) select p_channel_id, sum(g.change) from gone g having count(*) > 0;
end $$;
