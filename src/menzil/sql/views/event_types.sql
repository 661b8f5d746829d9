-- Event types with their schemas.
create or replace view menzil.event_types as
select t.name, t.description, t.schema, t.created_at from menzil.event_type t;
