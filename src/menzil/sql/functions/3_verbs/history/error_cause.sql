-- What an error is about, the same text for the same trouble: without its class, and with marks in place of numbers, ids,
-- times and quoted texts. The status of an HTTP answer stays: it is the trouble.
create or replace function menzil._error_cause(p_error text) returns text
language plpgsql immutable parallel safe as $$
begin
  return menzil._outline_cause(menzil._error_outline(p_error));
end $$;
