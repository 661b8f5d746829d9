"""DELIVER: one file per protocol, each `deliver(message, endpoint) -> Outcome`."""
