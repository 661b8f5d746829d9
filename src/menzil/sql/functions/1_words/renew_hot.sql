create or replace function menzil._renew_hot(p_name text, p_now timestamptz) returns void
language plpgsql set timezone = 'UTC' set datestyle = 'ISO' as $$
declare
  v_month timestamptz := date_trunc('month', p_now);
  v_body text := 'archive_' || to_char(v_month, 'YYYY_MM');
  v_text text := (select h.template from menzil.hot_function h where h.name = p_name);
begin
  v_text := replace(v_text, '{body}', 'menzil.' || case when to_regclass('menzil.' || v_body) is null then 'message' else v_body end);
  v_text := replace(v_text, '{from}', quote_literal(v_month));
  execute replace(v_text, '{to}', quote_literal(v_month + interval '1 month'));
  update menzil.hot_function h set month = case when to_regclass('menzil.' || v_body) is not null then v_month end where h.name = p_name;
end $$;
