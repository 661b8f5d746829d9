-- Whether a transaction that withdraws messages is open in this snapshot, or told of a withdrawal a moment ago.
create or replace function menzil._withdrawals_are_open(p_snapshot pg_snapshot) returns boolean
language sql volatile
return menzil._register('menzil.withdrawn_xid') >= pg_snapshot_xmin(p_snapshot)::text::bigint
    or menzil._microseconds(clock_timestamp()) - menzil._register('menzil.withdrawn_at') between -1000000 and 2000000;
