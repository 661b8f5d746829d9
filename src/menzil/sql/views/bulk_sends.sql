-- Sends of many rows: open ones are being staged, done ones are why the same id sends nothing again.
create or replace view menzil.bulk_sends as
select s.send_id, s.state, s.what, s.opened_at, s.touched_at, s.committed_at, s.row_count, s.created_count, s.first_id, s.last_id
  from menzil.bulk_send s;
