-- A fingerprint of archived messages that PostgreSQL and Spark both compute, so that a lake is compared with the archive
-- without moving a row. Each row becomes one text, its hash the first 64 bits of the md5 of that text; hashes are summed
-- and xored, so that order does not matter and parts of a month add up. menzil/spark/lake/fingerprint.py says the same in
-- the words of Spark; neither may change without the other.
-- In the text, fields stand between unit separators and NULL is a record separator; texts begin with =, so that none of
-- them looks like NULL; times are their eight bytes, microseconds since 2000, exact in every year.

-- The hash of a message whose values are texts already: an export reads them so, and no value is made a text twice. No other function
-- of menzil is called, so that PostgreSQL puts the text of this one into the query, and readers of the archive may call it. The cast
-- to 64 bits takes the first half of the md5.
create or replace function menzil.message_hash(
  p_id bigint, p_status text, p_channel text, p_endpoint_id integer, p_priority integer, p_num_attempts bigint, p_retry_count integer,
  p_created_at timestamptz, p_scheduled_at timestamptz, p_expires_at timestamptz, p_first_leased_at timestamptz, p_leased_at timestamptz,
  p_ended_at timestamptz, p_ended_xid text, p_worker text, p_payload text, p_content bytea, p_payload_hash text, p_ordering_key text,
  p_idempotency_key text, p_correlation_id text, p_headers text, p_metadata text, p_last_error text, p_state bytea, p_redrive_of bigint,
  p_replay_of bigint, p_response text
) returns bigint
language sql stable parallel safe as $$
  select ('x' || md5(convert_to(concat_ws(chr(31),
  p_id, '=' || p_status, '=' || p_channel, p_endpoint_id, p_priority, p_num_attempts, p_retry_count,
  coalesce(encode(timestamptz_send(p_created_at), 'hex'), chr(30)), coalesce(encode(timestamptz_send(p_scheduled_at), 'hex'), chr(30)),
  coalesce(encode(timestamptz_send(p_expires_at), 'hex'), chr(30)), coalesce(encode(timestamptz_send(p_first_leased_at), 'hex'), chr(30)),
  coalesce(encode(timestamptz_send(p_leased_at), 'hex'), chr(30)), coalesce(encode(timestamptz_send(p_ended_at), 'hex'), chr(30)), p_ended_xid,
  coalesce('=' || p_worker, chr(30)), coalesce(p_payload, chr(30)), coalesce(encode(p_content, 'hex'), chr(30)),
  coalesce('=' || p_payload_hash, chr(30)), coalesce('=' || p_ordering_key, chr(30)), coalesce('=' || p_idempotency_key, chr(30)),
  coalesce(p_correlation_id, chr(30)), coalesce(p_headers, chr(30)), coalesce(p_metadata, chr(30)),
  coalesce('=' || p_last_error, chr(30)), coalesce(encode(p_state, 'hex'), chr(30)),
  coalesce(p_redrive_of::text, chr(30)), coalesce(p_replay_of::text, chr(30)), coalesce(p_response, chr(30))), 'UTF8')))::bit(64)::bigint
$$;

create or replace function menzil._archive_hash(a menzil.archived) returns bigint
language sql stable parallel safe as $$
  select menzil.message_hash(a.id, a.status, a.channel, a.endpoint_id, a.priority, a.num_attempts, a.retry_count, a.created_at,
    a.scheduled_at, a.expires_at, a.first_leased_at, a.leased_at, a.ended_at, a.ended_xid::text, a.worker, a.payload::text, a.content,
    a.payload_hash, a.ordering_key, a.idempotency_key, a.correlation_id::text, a.headers::text, a.metadata::text, a.last_error, a.state,
    a.redrive_of, a.replay_of, a.response::text)
$$;

-- The hash of a try, with its duration as the lake keeps it: whole microseconds of the double take part, within what a bigint holds.
create or replace function menzil.try_hash(
  p_id bigint, p_attempt bigint, p_outcome text, p_leased_at timestamptz, p_ended_at timestamptz, p_worker text, p_error text,
  p_status_code integer, p_duration_ms double precision
) returns bigint
language sql stable parallel safe as $$
  select ('x' || md5(convert_to(concat_ws(chr(31),
  p_id, p_attempt, '=' || p_outcome, coalesce(encode(timestamptz_send(p_leased_at), 'hex'), chr(30)),
  coalesce(encode(timestamptz_send(p_ended_at), 'hex'), chr(30)), coalesce('=' || p_worker, chr(30)), coalesce('=' || p_error, chr(30)), coalesce(p_status_code::text, chr(30)),
  coalesce(floor(greatest(least(p_duration_ms, 9e14), -9e14) * 1000)::bigint::text, chr(30))), 'UTF8')))::bit(64)::bigint
$$;

create or replace function menzil._attempt_hash(
  p_id bigint, p_attempt bigint, p_outcome text, p_leased_at timestamptz, p_ended_at timestamptz, p_worker text, p_error text,
  p_status_code integer, p_duration_ms numeric
) returns bigint
language sql stable parallel safe as $$
  select menzil.try_hash(p_id, p_attempt, p_outcome, p_leased_at, p_ended_at, p_worker, p_error, p_status_code,
    -- What is too small for a double is nothing in the lake and an error here; so is what is too large.
    case when abs(p_duration_ms) < 2.4704e-324 then 0 else greatest(least(p_duration_ms, 9e14), -9e14) end::double precision)
$$;

-- The messages of a part of the archive, and the tries that succeeded. A function of its own that returns its query, since
-- only then PostgreSQL divides the hashing among workers: not when a variable takes the row.
create or replace function menzil._archive_part(p_start timestamptz, p_end timestamptz, p_from xid8, p_until xid8)
returns table (n bigint, low bigint, high bigint, first_at timestamptz, last_at timestamptz, sum numeric, "xor" bigint,
               tries bigint, try_sum numeric, try_xor bigint)
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
  v_span record;
begin
  select * into v_span from menzil.archive_span(p_start, p_end);
  return query
    select count(*), min(h.id), max(h.id), min(h.created_at), max(h.created_at), coalesce(sum(h.hash), 0),
           coalesce(bit_xor(h.hash), 0), count(h.try), coalesce(sum(h.try), 0), coalesce(bit_xor(h.try), 0)
      from (
        select a.id, a.created_at,
               menzil._archive_hash(row(a.id, a.status, a.channel, a.endpoint_id, a.priority, a.num_attempts, a.retry_count, a.created_at, a.scheduled_at,
                 a.expires_at, a.first_leased_at, a.leased_at, a.ended_at, a.ended_xid, a.worker, a.payload, a.content, a.payload_hash, a.ordering_key,
                 a.idempotency_key, a.correlation_id, a.headers, a.metadata, a.last_error, a.state, a.redrive_of, a.replay_of, a.response)::menzil.archived) as hash,
               -- The try that succeeded, as the view attempts shows it.
               case when a.status = 'completed' then menzil._attempt_hash(a.id, a.num_attempts, 'completed', a.leased_at, a.ended_at,
                 a.worker, null, case when a.response ->> 'status' ~ '^[0-9]{1,9}$' then (a.response ->> 'status')::integer end,
                 case when jsonb_typeof(a.response -> 'duration_ms') = 'number' then (a.response ->> 'duration_ms')::numeric
                      else round(extract(epoch from a.ended_at - a.leased_at) * 1000, 3) end) end as try
          from menzil._ended a
         where a.created_at >= p_start and a.created_at < p_end and a.ended_xid >= p_from and a.ended_xid < p_until
           and a.lo_id > v_span.first_id - 4096 and a.lo_id <= v_span.last_id
        offset 0) h;   -- each hash is computed once; a lateral would do that too, but not in parallel
end $$;

drop function if exists menzil.archive_fingerprint(timestamptz, text, text);
drop function if exists menzil.archive_fingerprint(timestamptz, text, text, timestamptz, timestamptz);

-- The fingerprint of the messages created in a month (UTC) whose ends have transaction ids from p_from to before p_until,
-- and which were created from p_created_from to before p_created_until, each NULL for no bound, and of their tries. With
-- p_until at most pg_snapshot_xmin(pg_current_snapshot()) the answer is final: nothing that is not committed yet can
-- appear below it.
create or replace function menzil.archive_fingerprint(
  p_month timestamptz, p_from text default null, p_until text default null, p_created_from timestamptz default null,
  p_created_until timestamptz default null
) returns table (row_count bigint, min_id bigint, max_id bigint, min_created_at timestamptz, max_created_at timestamptz,
               hash_sum numeric, hash_xor bigint, attempt_count bigint, attempt_sum numeric, attempt_xor bigint,
               failed_attempt_count bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set jit = off as $$
declare
  v_month timestamptz := menzil._exported_month(p_month);
  v_start timestamptz := greatest(v_month, p_created_from);
  v_end timestamptz := least((v_month at time zone 'UTC' + interval '1 month') at time zone 'UTC', p_created_until);
  v_from xid8 := menzil._xid_from(coalesce(p_from, '0'));
  v_until xid8 := menzil._xid_from(coalesce(p_until, '18446744073709551615'));
  v_found record;
begin
  select * into v_found from menzil._archive_part(v_start, v_end, v_from, v_until);
  return query
    select v_found.n, v_found.low, v_found.high, v_found.first_at, v_found.last_at, v_found.sum, v_found.xor, v_found.tries + t.n,
           v_found.try_sum + t.sum, v_found.try_xor # t.xor, t.n
      from (select count(*) as n, coalesce(sum(h.hash), 0) as sum, coalesce(bit_xor(h.hash), 0) as xor
              from menzil.attempts s
              join menzil.archive a on a.id = s.message_id
              cross join lateral (
                select menzil._attempt_hash(s.message_id, s.attempt, s.outcome, s.leased_at, s.ended_at, s.worker, s.error, s.status_code,
                                            s.duration_ms) as hash offset 0) h
             where s.outcome <> 'completed'
               and s.message_id between v_found.low and v_found.high   -- so that not the tries of all times are read
               and a.created_at >= v_start and a.created_at < v_end and a.ended_xid >= v_from and a.ended_xid < v_until) t;
end $$;
