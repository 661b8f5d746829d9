-- A URL as people may see it: the values in its query that look like credentials are hidden, by the names of their parameters.
-- Hidden too are long values without a name. It hides rather too much: ?country_code=tr is no secret and no loss.
create or replace function menzil._shown_url(p_url text) returns text
language sql immutable parallel safe
return regexp_replace(regexp_replace(p_url,
    '([?&][^=&]*(auth|code|cookie|credential|key|pass|pwd|secret|session|sig|token)[^=&]*=)[^&]+', E'\\1***', 'gi'),
    '([?&])[^=&]{16,}(?=&|$)', E'\\1***', 'g');
