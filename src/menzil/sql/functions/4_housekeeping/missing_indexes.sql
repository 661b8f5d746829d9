-- Indexes that this release wants and the database does not have yet, with the next statement for each: `menzil migrate` runs them
-- and asks again until there is none. alone: the statement must stand outside a transaction. An index that another session builds at
-- this moment is left to it; one that a broken build left behind is dropped first.
create or replace function menzil._missing_indexes() returns table (name text, statement text, alone boolean)
language sql stable as $$
  with wanted(name, relation, body) as (values
    ('event_entity', 'event', '(entity_type, entity_id, id)'),
    ('schedule_slot_message', 'schedule_slot', '(message_id) where message_id is not null'),
    ('bulk_send_first', 'bulk_send', '(first_id) where first_id is not null'),
    ('line_news', 'line', '(channel_id) where news is not null')
  )
  select w.name, case when i.indexrelid is null then format('create index concurrently %I on menzil.%I %s', w.name, w.relation, w.body)
                      else format('drop index concurrently menzil.%I', w.name) end, true
    from wanted w left join pg_index i on i.indexrelid = to_regclass('menzil.' || w.name)
   where i.indisvalid is not true
     and not exists (select 1 from pg_stat_progress_create_index s where s.index_relid = i.indexrelid)
   order by 1
$$;
