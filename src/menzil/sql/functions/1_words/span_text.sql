-- A length of time as it stands in a sentence: its two largest units, the same in every session.
create or replace function menzil._span_text(p_span interval) returns text
language sql immutable parallel safe
return (
  select case when s.n >= 86400 then s.n / 86400 || ' d' || coalesce(' ' || nullif(s.n % 86400 / 3600, 0) || ' h', '')
              when s.n >= 3600 then s.n / 3600 || ' h' || coalesce(' ' || nullif(s.n % 3600 / 60, 0) || ' min', '')
              when s.n >= 60 then s.n / 60 || ' min' || coalesce(' ' || nullif(s.n % 60, 0) || ' s', '')
              else s.n || ' s' end
    from (select greatest(floor(extract(epoch from p_span)), 0)::bigint as n) s
);
