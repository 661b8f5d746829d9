-- What may be told of an error to a caller who sees no payload: the HTTP status, the class of an exception, or a sentence of menzil's
-- own; null: the rest of the text comes from a program or an endpoint, and may quote the message.
create or replace function menzil._told_cause(p_error text) returns text
language plpgsql immutable parallel safe as $$
declare
  v_text text := regexp_replace(left(p_error, 1000), E'^\\s*(\\[(RETRYABLE|PERMANENT|DISABLE)\\]\\s*)+', '');
begin
  return coalesce(substring(v_text from E'^HTTP [0-9]{3}\\M'),
                  substring(v_text from E'^The lease expired before the message was settled\\.'),
                  -- What the delivery met before an answer: the words are menzil's, the host and what follows are left out.
                  substring(v_text from E'^Connection (?:refused|closed|reset)(?= by )'),
                  substring(v_text from E'^No complete answer within [0-9.e+-]{1,12} s(?= \\()'),
                  case when v_text ~ '^Connection to .* failed: ' then 'Connection failed'
                       when v_text ~ '^TLS failed with ' then 'TLS failed'
                       when v_text ~ '^The TLS certificate of .* was not accepted: ' then 'The TLS certificate was not accepted' end,
                  substring(v_text from E'^([A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*)(:|$)'));
end $$;
