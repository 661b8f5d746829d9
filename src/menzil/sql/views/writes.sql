-- PostgreSQL lets the owner of a simple view write through it, past every check and past the tables that belong together. So
-- writes are refused with the name of the function that does it; menzil.endpoints takes two columns. Asks first: a trigger locks its view.
do $do$
declare
  v_view record;
begin
  for v_view in
    select v.name, v.hint from (values
      ('archive', 'menzil.message_erase(id) erases a message, menzil.cleanup_old_archive_partitions() drops old months.'),
      ('attempts', 'menzil.cleanup_attempts() removes old ones.'),
      ('bridge_positions', 'Call menzil.bridge_seek(name, partition, position).'),
      ('bridges', 'Call menzil.bridge_create, menzil.bridge_alter or menzil.bridge_drop.'),
      ('bulk_sends', 'Call menzil.bulk_abort(send_id).'),
      ('channels', 'Call menzil.channel_set(name), menzil.channel_pause(name) or menzil.channel_release(name).'),
      ('consumers', 'Call menzil.feed_forget(name).'),
      ('dlq', 'Call menzil.redrive_message(id) or menzil.cleanup_dlq().'),
      ('endpoints', 'Call menzil.create_endpoint(name, protocol, config) or menzil.drop_endpoint(name).'),
      ('event_log', 'menzil.cleanup_event_log() removes old lines.'),
      ('event_types', 'Call menzil.create_event_type(name) or menzil.drop_event_type(name).'),
      ('jobs', 'Call menzil.job_run(name).'),
      ('pipeline_runs', 'Call menzil.pipeline_run_end(id).'),
      ('plans', 'Call menzil.plan_create, menzil.plan_pause or menzil.plan_stop.'),
      ('pulse', 'The job pulse writes it.'),
      ('queue', 'Call menzil.send(name, payload), menzil.message_cancel(id) or menzil.message_retry_now(id).'),
      ('schedules', 'Call menzil.schedule_create, menzil.schedule_pause, menzil.schedule_resume or menzil.schedule_drop.'),
      ('settings', 'Call menzil.set_setting(name, value).'),
      ('subscriptions', 'Call menzil.subscribe(event_type, endpoint) or menzil.unsubscribe(id).')) v(name, hint)
     where not exists (select from pg_trigger t where t.tgrelid = ('menzil.' || v.name)::regclass and t.tgname = 'refuse_write')
  loop
    execute format('create trigger refuse_write instead of insert or %s delete on menzil.%I for each row execute function menzil._refuse_write(%L)',
                   case when v_view.name = 'endpoints' then '' else 'update or' end, v_view.name, v_view.hint);
    if v_view.name = 'endpoints' then
      create trigger write_endpoint instead of update on menzil.endpoints for each row execute function menzil._write_endpoint();
    end if;
  end loop;
end $do$;
