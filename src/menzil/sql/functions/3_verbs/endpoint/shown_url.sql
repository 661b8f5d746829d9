-- A URL as people may see it: the values in its query that look like credentials are hidden, by the names of their parameters.
-- Long values without a name are hidden too. A value that is no secret may be hidden by its name, such as ?country_code=tr.
create or replace function menzil._shown_url(p_url text) returns text
language sql immutable parallel safe
return regexp_replace(regexp_replace(p_url,
    '([?&][^=&]*(auth|code|cookie|credential|key|pass|pwd|secret|session|sig|token)[^=&]*=)[^&]+', E'\\1***', 'gi'),
    '([?&])[^=&]{16,}(?=&|$)', E'\\1***', 'g');
