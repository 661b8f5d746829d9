-- A subject of NATS to which messages are published.
create or replace function menzil._is_subject(p_subject text) returns boolean
language sql immutable parallel safe
return p_subject ~ E'^[^\\s.*>$][^\\s.*>]*(\\.[^\\s.*>]+)*$' and p_subject !~ '[[:cntrl:]]' and length(p_subject) <= 255;
