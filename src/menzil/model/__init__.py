"""Words without I/O: messages, outcomes, options, errors."""
