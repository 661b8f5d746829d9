-- Deletes rows of menzil.correlated and menzil.lineage whose messages are gone. A round walks over p_pages pages of each, and the next one
-- goes on behind them, from the beginning after the last. Returns how many went.
create or replace function menzil._cleanup_lookups(p_pages integer) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_state jsonb := coalesce((select j.state from menzil.job j where j.name = 'old_lookups'), '{}');
  v_size bigint := current_setting('block_size')::bigint;
  v_from bigint := coalesce((v_state ->> 'correlated')::bigint, 0);
  v_to bigint := least(v_from + p_pages, 4294967295);
  v_count integer;
  v_total integer;
begin
  delete from menzil.correlated l where l.ctid >= format('(%s,0)', v_from)::tid and l.ctid < format('(%s,0)', v_to)::tid
     and not exists (select 1 from menzil.message m where m.id = l.message_id);
  get diagnostics v_total = row_count;
  v_state := v_state || jsonb_build_object('correlated', case when v_to * v_size < pg_relation_size('menzil.correlated') then v_to else 0 end);
  v_from := coalesce((v_state ->> 'lineage')::bigint, 0);
  v_to := least(v_from + p_pages, 4294967295);
  delete from menzil.lineage l where l.ctid >= format('(%s,0)', v_from)::tid and l.ctid < format('(%s,0)', v_to)::tid
     and not exists (select 1 from menzil.message m where m.id = l.message_id);
  get diagnostics v_count = row_count;
  v_state := v_state || jsonb_build_object('lineage', case when v_to * v_size < pg_relation_size('menzil.lineage') then v_to else 0 end);
  update menzil.job j set state = v_state where j.name = 'old_lookups';
  return v_total + v_count;
end $$;
