"""Other queues on PostgreSQL, run as their documentation says to run them fast; installed for one run only."""
