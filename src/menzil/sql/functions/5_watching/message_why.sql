-- Why a message is not moving: the reasons, most decisive first, each with a sentence and, where there is one, the command that
-- removes it. No payload. Reads only, and takes no lock that waits.
create or replace function menzil.message_why(p_id bigint) returns table (
  rank integer, reason text, sentence text, since timestamptz, until timestamptz, blocked_by text, repair text
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_order constant text[] := '{unknown,ended,copy,in_flight,expired,no_place,held,endpoint_disabled,channel_paused,channel_released,circuit_open,circuit_probing,'
    'endpoint_resting,scheduled,retrying,behind_key,key_blocked_by_dead_letter,concurrency_full,rate_full,no_worker,workers_busy,waiting_turn,next,expires_first}';
begin
  if p_id is null then
    perform menzil._refuse_null('A message id');
  end if;
  return query
    select row_number() over (order by array_position(v_order, w.reason))::integer, w.reason, w.sentence, w.since, w.until, w.blocked_by, w.repair
      from menzil._why(p_id, clock_timestamp()) w order by 1;
end $$;
