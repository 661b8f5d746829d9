-- Refuses to bring history back to a channel that takes no messages.
create or replace function menzil._check_open(p_channel menzil.channel) returns void
language plpgsql as $$
begin
  if p_channel.dropped_at is not null then
    raise exception using errcode = '55000', message = format('Channel %s is gone and takes no messages.', quote_literal(p_channel.name)),
      hint = 'Send the payload, which menzil.archive and menzil.dlq keep, to another channel.';
  elsif p_channel.released_at is not null or not p_channel.enabled then
    perform menzil._refuse_closed(p_channel.name, p_channel.released_at is not null);
  end if;
end $$;
