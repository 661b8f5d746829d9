-- Leases that ended without an answer: of interest only if one of them was a probe.
create or replace function menzil._tell_nothing(p_channel_id integer, p_leased_at timestamptz, p_now timestamptz) returns void
language plpgsql as $$
begin
  insert into menzil.line (channel_id, due_at, news, news_count, news_at)
    select g.channel_id, p_now, 4, 1, p_leased_at from menzil.gate g where g.channel_id = p_channel_id and g.circuit = 1;
end $$;
