-- One message of a family: where it stands.
create or replace function menzil._family_member(
  p_id bigint, out channel text, out status text, out created_at timestamptz, out redrive_of bigint, out replay_of bigint
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  select c.name, m.created_at, m.redrive_of, m.replay_of into channel, created_at, redrive_of, replay_of
    from (select m.channel_id, m.created_at, m.redrive_of, m.replay_of from menzil.message m where m.id = p_id limit 1) m
    join menzil.channel c on c.id = m.channel_id;
  if found then
    status := coalesce((menzil._end_of(p_id)).status, case when menzil._lease_of(p_id) is null then 'pending' else 'processing' end);
  end if;
end $$;
