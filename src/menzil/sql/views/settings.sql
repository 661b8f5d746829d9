-- Every setting with its value, and the one place where its default, range and meaning are written:
-- menzil.set_setting checks against this view. The unit says how a value is read: boolean, networks, patterns, words, or a number.
create or replace view menzil.settings as
select d.name, coalesce(to_jsonb(v) ->> d.name, w.value, d.default_value) as value, d.default_value, d.minimum, d.maximum, d.unit, d.description
  from menzil.setting_value v cross join (values
    ('max_queue_size', '1000000', 0::bigint, 2147483647::bigint, 'messages', 'Messages that may wait or be in flight over all channels; 0 is no limit.'),
    ('max_payload_size', '1048576', 1024, 104857600, 'bytes', 'Largest payload of one message.'),
    ('default_max_retries', '10', 0, 1000, 'retries', 'Retries after the first try before a message is a dead letter.'),
    ('retry_base_delay', '10', 1, 3600, 'seconds', 'Delay before the first retry.'),
    ('retry_max_delay', '300', 1, 86400, 'seconds', 'Longest delay between two tries of a retry policy that has neither max_delay_seconds nor a longer base_delay_seconds.'),
    ('retry_increment', '30', 1, 3600, 'seconds', 'Growth of the delay per retry with linear backoff.'),
    ('circuit_breaker_threshold', '10', 1, 1000, 'failures', 'Failures in a row that open the circuit of an endpoint.'),
    ('circuit_breaker_cooldown', '30', 5, 3600, 'seconds', 'Rest of an open circuit before one message may probe the endpoint.'),
    ('stale_recovery_timeout', '300', 60, 3600, 'seconds', 'Lease of a delivery to an endpoint; a delivery that shows no life for so long is taken back.'),
    ('dlq_retention_days', '30', 1, 3650, 'days', 'Age at which dead letters are cleaned up.'),
    ('archive_retention_months', '6', 1, 120, 'months', 'Age at which months of the archive are dropped.'),
    ('event_log_retention_days', '90', 1, 3650, 'days', 'Age at which lines of the event log are cleaned up.'),
    ('inbox_retention', '604800', 60, 31536000, 'seconds', 'Time the inbox remembers a message that a consumer has seen.'),
    ('idempotency_retention', '86400', 0, 31536000, 'seconds', 'Time an idempotency key is kept after its message completed; the key of a failed, expired or cancelled message is free at once. 0 keeps it only while the message lives.'),
    ('archive_completed', 'true', null, null, 'boolean', 'Whether completed messages stay in the archive; others always do. Turning it off keeps what completed before.'),
    ('capture_response', 'false', null, null, 'boolean', 'Whether an excerpt of each response of an endpoint is kept.'),
    ('notify', 'true', null, null, 'boolean', 'Whether sends wake up idle workers; polling goes on either way.'),
    ('http_allow_internal_urls', 'false', null, null, 'boolean', 'Whether HTTP endpoints may resolve to private and loopback addresses.'),
    ('http_allow_http', 'true', null, null, 'boolean', 'Whether HTTP endpoints may use http:// next to https://.'),
    ('http_allowed_networks', '', null, null, 'networks', 'Private networks that HTTP endpoints may reach, separated by commas.'),
    ('broker_allowed_networks', '', null, null, 'networks', 'Private networks that endpoints of brokers may reach, separated by commas.'),
    ('redact', '*authorization*, *cookie*, *password*, *passwd*, *passphrase*, *secret*, *token*, *credential*, *api_key*, *private_key*, *access_key*, card_number, cvv, cvc, iban, ssn', null, null, 'patterns', 'Keys whose values are hidden where people look at messages: names with * for any text, and JSON paths such as $.card.*, separated by commas.'),
    ('console_payloads', 'redact', null, null, 'words', 'What the console shows of payloads: show, redact (hides what the setting redact names) or hide.')
  ) d(name, default_value, minimum, maximum, unit, description)
  left join menzil.setting_word w on w.name = d.name;
