-- psql -X -q -a -f examples/tour.sql "$(menzil pg dsn)"
\pset footer off
select menzil.channel_set('parcels', p_max_concurrency => 2);

begin;
select menzil.send('parcels', '{"to": "Konya"}');
rollback;    -- Rolled back: nothing is sent.

begin;
select menzil.send('parcels', '{"to": "Bursa"}');
select menzil.send_with_options('parcels', '{"to": "Edirne"}', p_priority => 5, p_ordering_key => 'ada');
commit;

-- A lease for 60 seconds. The id and num_attempts together are the proof of it; \gset keeps them.
select id, num_attempts, payload from menzil.message_dequeue(60000, p_channels => '{parcels}') \gset
\echo leased message :id, attempt :num_attempts: :payload
select menzil.message_complete(:id, :num_attempts);
select status, num_attempts, payload from menzil.archive where id = :id;

select id, num_attempts, payload from menzil.message_dequeue(60000, p_channels => '{parcels}') \gset
select menzil.message_fail(:id, :num_attempts, '[RETRYABLE] no one at home');
select status, retry_count, last_error from menzil.message_status(:id);
select menzil.message_cancel(:id);
