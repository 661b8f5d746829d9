-- These messages have ended: channels with a max_size have room again. The log of sizes is summed up now and then.
create or replace function menzil._shrink(p_ids bigint[]) returns void
language plpgsql as $$
declare
  v_channel record;
begin
  for v_channel in
    select c.id, count(*) as n from unnest(p_ids) u(id)
      cross join lateral (select m.channel_id from menzil.message m where m.id = u.id offset 0) m
      cross join lateral (select c.id from menzil.channel c where c.id = m.channel_id and c.max_size is not null offset 0) c
     group by c.id
  loop
    perform menzil._change_size(v_channel.id, - v_channel.n);
  end loop;
end $$;
