-- psql "$(menzil pg dsn)" -f examples/tour.sql, in any database with menzil installed
select menzil.channel_set('parcels', p_max_concurrency => 2);

begin;
select menzil.send('parcels', '{"to": "Konya"}');
rollback;                                                      -- never was

begin;
select menzil.send('parcels', '{"to": "Bursa"}');
select menzil.send_with_options('parcels', '{"to": "Edirne"}', p_priority => 5, p_ordering_key => 'ada');
commit;

-- Lease one for 60 seconds. The id and num_attempts together are the proof of the lease.
select id, num_attempts, priority, payload from menzil.message_dequeue(60000, p_channels => '{parcels}') \gset leased_
\echo leased :leased_id attempt :leased_num_attempts: :leased_payload

select menzil.message_complete(:leased_id, :leased_num_attempts);
select id, status, num_attempts, payload from menzil.archive where id = :leased_id;
select menzil.message_complete(:leased_id, :leased_num_attempts);   -- once is enough

select id, num_attempts from menzil.message_dequeue(60000, p_channels => '{parcels}') \gset leased_
select menzil.message_fail(:leased_id, :leased_num_attempts, '[RETRYABLE] nobody at home');
select status, num_attempts, retry_count, last_error from menzil.message_status(:leased_id);
select menzil.message_cancel(:leased_id);
