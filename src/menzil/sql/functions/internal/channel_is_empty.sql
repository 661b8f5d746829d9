-- Whether nothing of this channel is live. The lease table is small: it holds only what is in flight.
create or replace function menzil._channel_is_empty(p_channel_id integer) returns boolean
language plpgsql stable
set enable_seqscan = off set jit = off as $$
begin
  return not (exists (select 1 from menzil.ready r where r.channel_id = p_channel_id)
           or exists (select 1 from menzil.scheduled s where s.channel_id = p_channel_id)
           or exists (select 1 from menzil.key_queue k where k.channel_id = p_channel_id and k.place = 1)
           or exists (select 1 from menzil.lease l where l.channel_id = p_channel_id));
end $$;
