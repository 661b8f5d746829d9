"""The window: looks at a queue and says what it sees. Nothing here changes anything."""
