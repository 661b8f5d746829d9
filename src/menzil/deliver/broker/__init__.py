"""What all brokers have in common: the mapping of a message, connections, batches, and what an answer means."""
