"""The figures we publish, as ratios measured in one run on one server. `python -m bench --help`."""
