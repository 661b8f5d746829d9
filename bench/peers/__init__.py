"""Other queues on PostgreSQL, to compare with; installed for one run only."""
