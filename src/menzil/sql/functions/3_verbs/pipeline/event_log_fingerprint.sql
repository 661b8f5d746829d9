-- The fingerprint of lines of the event log, as archive_fingerprint.sql says it of messages: lines whose transaction ids go
-- from p_from to before p_until, created from p_created_from to before p_created_until, each NULL for no bound.

drop function if exists menzil.event_log_fingerprint(text, text, timestamptz, timestamptz);

create or replace function menzil.event_log_fingerprint(
  p_from text default null, p_until text default null, p_created_from timestamptz default null, p_created_until timestamptz default null
) returns table (row_count bigint, min_id bigint, max_id bigint, min_created_at timestamptz, max_created_at timestamptz,
                 hash_sum numeric, hash_xor bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set jit = off as $$
declare
  v_from xid8 := menzil._xid_from(coalesce(p_from, '0'));
  v_until xid8 := menzil._xid_from(coalesce(p_until, '18446744073709551615'));
begin
  return query
    select count(*), min(e.id), max(e.id), min(e.created_at), max(e.created_at), coalesce(sum(h.hash), 0), coalesce(bit_xor(h.hash), 0)
      from menzil.event e
      cross join lateral (select menzil._hash64(concat_ws(chr(31),
          e.id, '=' || e.event_type, '=' || e.entity_type, coalesce('=' || e.entity_id, chr(30)), coalesce(e.old_value::text, chr(30)),
          coalesce(e.new_value::text, chr(30)), coalesce(e.metadata::text, chr(30)), menzil._canon(e.created_at), e.xid,
          coalesce('=' || e.actor, chr(30)), coalesce('=' || e.via, chr(30)))) as hash offset 0) h   -- each hash is computed once
     where e.xid >= v_from and e.xid < v_until
       and e.created_at >= coalesce(p_created_from, '-infinity') and e.created_at < coalesce(p_created_until, 'infinity');
end $$;
