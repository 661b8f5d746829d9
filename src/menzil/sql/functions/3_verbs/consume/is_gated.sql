-- Whether the gate of a channel is asked before its messages are leased. An endpoint's always is: it holds the circuit. A
-- channel with a max_size has leases of its own, so that a settle knows whose room comes back.
create or replace function menzil._is_gated(p_channel menzil.channel) returns boolean
language sql immutable
return p_channel.protocol is not null or p_channel.paused or not p_channel.enabled or p_channel.max_concurrency is not null
    or p_channel.release_interval_ms > 0 or p_channel.max_size is not null;
