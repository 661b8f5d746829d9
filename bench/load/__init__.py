"""The load lab: what happens to latency, sizes and memory when the load does not end."""
