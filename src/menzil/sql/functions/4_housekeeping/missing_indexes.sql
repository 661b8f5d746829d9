-- Indexes that this release wants and the database does not have yet, with the next statement for each: `menzil migrate` runs them
-- and asks again until there is none. An index of message is made on the parent alone, which reads no row; then CONCURRENTLY on each
-- month; then the month's index is attached. alone: the statement must stand outside a transaction. An index that another
-- session builds at this moment is left to it; one that a broken build left behind is dropped first.
create or replace function menzil._missing_indexes() returns table (name text, statement text, alone boolean)
language sql stable as $$
  with wanted(name, relation, body) as (values
    ('message_redrive_of', 'message', '(redrive_of) where redrive_of is not null'),
    ('message_replay_of', 'message', '(replay_of) where replay_of is not null'),
    ('message_correlation_id', 'message', '(correlation_id) where correlation_id is not null'),
    ('event_entity', 'event', '(entity_type, entity_id, id)'),
    ('schedule_slot_message', 'schedule_slot', '(message_id) where message_id is not null'),
    ('bulk_send_first', 'bulk_send', '(first_id) where first_id is not null'),
    ('line_news', 'line', '(channel_id) where news is not null')
  ), built as (   -- the index of a table without partitions, or of each partition
    select w.name as parent, w.body, c.relname, x.name, 'menzil.' || quote_ident(x.name) as path,
           (select i.indisvalid from pg_index i where i.indexrelid = to_regclass('menzil.' || quote_ident(x.name))) as valid, p.inhrelid is not null as is_part
      from wanted w
      left join pg_inherits p on p.inhparent = to_regclass('menzil.' || w.relation)
      join pg_class c on c.oid = coalesce(p.inhrelid, to_regclass('menzil.' || w.relation))
      cross join lateral (select case when p.inhrelid is null then w.name else c.relname || substr(w.name, length(w.relation) + 1) end as name) x
     where not exists (   -- under whatever name: a month that is made later names its indexes itself
       select 1 from pg_inherits k join pg_index i on i.indexrelid = k.inhrelid
        where k.inhparent = to_regclass('menzil.' || w.name) and i.indrelid = p.inhrelid)
       and (p.inhrelid is not null or (select i.indisvalid from pg_index i where i.indexrelid = to_regclass('menzil.' || w.name)) is not true)
  )
  select w.name, format('create index %I on only menzil.%I %s', w.name, w.relation, w.body), false
    from wanted w join pg_class c on c.oid = to_regclass('menzil.' || w.relation) where c.relkind = 'p' and to_regclass('menzil.' || w.name) is null
  union all
  select b.name, case when b.valid is null then format('create index concurrently %I on menzil.%I %s', b.name, b.relname, b.body)
                      when not b.valid then format('drop index concurrently %s', b.path)
                      else format('alter index menzil.%I attach partition %s', b.parent, b.path) end,
         b.valid is not true
    from built b
   where (b.valid is null or to_regclass('menzil.' || b.parent) is not null)
     and not exists (select 1 from pg_stat_progress_create_index s where s.index_relid = to_regclass(b.path))
   order by 1
$$;
