-- A run of `menzil pipeline` begins. Returns its id, for menzil.pipeline_run_end. What a URL says of a user and a password is not kept.
create or replace function menzil.pipeline_run_begin(p_kind text, p_lake text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id bigint;
begin
  perform menzil._refuse_null('The kind of a run') where p_kind is null;
  if length(p_kind) not between 1 and 100 then
    perform menzil._refuse_value('The kind of a run has 1 to 100 characters.', 'Use export, audit, send, fanout, replay or report.');
  end if;
  insert into menzil.pipeline_run (kind, lake) values (p_kind, left(regexp_replace(p_lake, '://[^/@]*@', '://***@'), 1000)) returning id into v_id;
  return v_id;
end $$;
