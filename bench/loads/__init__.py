"""What workers do: `bare` is plain tables, the limit of the server; `queue` is menzil."""
