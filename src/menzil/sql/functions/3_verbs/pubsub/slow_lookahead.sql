-- Whether a pattern has a lookahead that PostgreSQL runs at many places of a text, each time to its end: the time grows with the square
-- of the length. A lookahead without *, + or {n,} stops early, and one right after a ^ runs once. Lookbehinds are linear.
-- Groups are folded from the inside: x is anything short, U may go on for ever, L is a lookahead that may, and Q is slow for certain.
create or replace function menzil._slow_lookahead(p_pattern text) returns boolean
language plpgsql immutable as $$
declare
  v_now text;
  v_before text;
begin
  if p_pattern !~ E'\\(\\?[=!]' then
    return false;
  elsif length(p_pattern) > 4096 then
    return true;   -- not looked at: people do not write it by hand
  end if;
  v_now := regexp_replace(p_pattern, E'\\\\.', 'x', 'g');
  v_now := regexp_replace(v_now, E'\\[\\^?\\]?[^]]*\\]', 'x', 'g');
  v_now := regexp_replace(regexp_replace(v_now, E'\\{[0-9]+,\\}', '+', 'g'), E'\\{[0-9,]+\\}', '', 'g');
  v_now := regexp_replace(v_now, '[^][()?=!<:*+^|]', 'x', 'g');
  loop
    v_before := v_now;
    v_now := regexp_replace(v_now, E'\\(\\?(<[=!][^()LQ]*|[=!][^()LQ*+U]*)\\)', 'x', 'g');
    v_now := regexp_replace(v_now, E'\\(\\?[=!][^()LQ]*\\)', 'L', 'g');
    v_now := regexp_replace(v_now, E'\\(\\?[=!<][^()]*\\)', 'Q', 'g');
    v_now := regexp_replace(v_now, E'\\([^()LQ*+U]*\\)', 'x', 'g');
    v_now := regexp_replace(v_now, E'\\([^()LQ]*\\)', 'U', 'g');
    v_now := regexp_replace(v_now, E'\\((\\?:)?L*[^()LQ]*(\\|L*[^()LQ]*)*\\)', 'L', 'g');
    v_now := regexp_replace(v_now, E'\\([^()]*\\)', 'Q', 'g');
    exit when v_now = v_before;
  end loop;
  return regexp_replace(v_now, E'(^|\\|)\\^(L(?![*+]))+', E'\\1', 'g') ~ '[LQ]';
end $$;
