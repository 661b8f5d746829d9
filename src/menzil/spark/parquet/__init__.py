"""Parquet files in tasks, with pyarrow alone: what executors need to write and read a lake."""
