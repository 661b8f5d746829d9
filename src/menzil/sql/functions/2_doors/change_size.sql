-- The door into the log of sizes.
create or replace function menzil._change_size(p_channel_id integer, p_change bigint) returns void
language plpgsql as $$
begin
  insert into menzil.size_change (channel_id, change) values (p_channel_id, p_change);
  if p_change < 0 and random() < 0.03 then
    perform menzil._sum_up_size(p_channel_id);
  end if;
end $$;
