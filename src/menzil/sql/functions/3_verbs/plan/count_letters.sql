-- Failed dead letters of one channel: counted up to a million, within the time that is left.
create or replace function menzil._count_letters(
  p_channel_id integer, p_cause_hash text, p_since timestamptz, p_until timestamptz, p_top bigint, p_deadline timestamptz, out n bigint, out exact boolean
)
language plpgsql stable set enable_seqscan = off set plan_cache_mode = force_custom_plan set jit = off as $$
declare
  v_most constant integer := 1000000;
begin
  if clock_timestamp() > p_deadline then
    n := 1;   -- there is one, or the channel would not have been asked
    exact := false;
    return;
  end if;
  select count(*) into n
    from (select 1 from menzil.dead_letter d
           where d.channel_id = p_channel_id and d.status = 'failed' and (p_cause_hash is null or d.cause_hash = p_cause_hash)
             and d.id <= p_top and d.failed_at >= p_since and d.failed_at < p_until
           limit v_most + 1) d;
  exact := n <= v_most;
end $$;
