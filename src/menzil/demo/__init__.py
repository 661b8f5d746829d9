"""`make demo`: a shop and its queue, on a PostgreSQL of their own, told step by step with what really happened.

Every claim is checked when it is made, and the book (what was sent and how it should end) is compared with the archive
at the end. Files: stage (where it plays), book, sending, turns, times, leases, trouble, crash: one room of scenes each.
"""
