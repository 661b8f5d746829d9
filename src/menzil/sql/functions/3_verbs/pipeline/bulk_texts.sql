-- Texts for statements about the rows of a send. rows: those that are messages, where s is a row, t its token, c its channel, k its
-- idempotency key; most sends go to one channel, and then there is nothing to join. id: the place of a row, moved by as much as
-- the ids of its run are.
create or replace function menzil._bulk_texts(p_bulk menzil.bulk, out rows text, out channel text, out id text)
language plpgsql immutable as $$
declare
  v_many boolean := cardinality(p_bulk.channels) > 1;
begin
  rows := format('menzil.%I s join unnest($1, $2) t(token, base) on t.token = s.token', p_bulk.staging)
    || case when v_many then ' join unnest($7::text[], $8::integer[]) c(name, id) on c.name = s.endpoint' else '' end
    || case when p_bulk.keyed then format(' left join menzil.%I k on k.place = t.base + s.n where k.repeat is not true', p_bulk.staging || '_keys') else '' end;
  channel := case when v_many then 'c.id' else '($8::integer[])[1]' end;
  id := 't.base + s.n + ($4::bigint[])' || case when cardinality(p_bulk.starts) > 1 then '[width_bucket(t.base + s.n, $3::bigint[])]' else '[1]' end;
end $$;
