-- archive itself is a table, partitioned by month, that readers select from. Here its first partitions are made.
select menzil._ensure_archive_months(clock_timestamp(), 3);
