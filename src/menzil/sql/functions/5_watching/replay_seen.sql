-- Whether this server is a standby, of when the newest transaction is that it replayed, and whether what it shows is older than p_behind.
-- One that receives and has replayed all of it is not behind, however long ago that was: nothing was written since.
create or replace function menzil._replay_seen(p_behind interval, out standby boolean, out at timestamptz, out behind boolean)
language sql stable as $$
  select pg_is_in_recovery(), r.at,
         r.at < clock_timestamp() - p_behind
         and (pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() and exists (select 1 from pg_stat_wal_receiver)) is not true
    from (select pg_last_xact_replay_timestamp() as at where pg_is_in_recovery()) r right join (select 1) one on true
$$;
