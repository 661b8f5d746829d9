-- What passed since the pulse began to count, by channel; channel 0 is all channels together. It only grows: the pulse itself forgets
-- minutes and hours, and a counter of a monitoring system must not. failed: tries that failed without an HTTP status, then with 1xx to 5xx.
create table menzil.pulse_total (
  channel_id    integer primary key,
  since         timestamptz not null default clock_timestamp(),
  sent          bigint not null default 0,
  completed     bigint not null default 0,
  dead          bigint not null default 0,
  expired       bigint not null default 0,
  cancelled     bigint not null default 0,
  deferred      bigint not null default 0,
  recovered     bigint not null default 0,
  failed        bigint[] not null default array_fill(0::bigint, array[6]),
  ended_ms      bigint[] not null default array_fill(0::bigint, array[12]),   -- counters as in pulse_minute
  try_ms        bigint[] not null default array_fill(0::bigint, array[12])
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
