"""The way in from brokers: records of a source become messages, each exactly once where the source has positions."""
