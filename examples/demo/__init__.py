"""`make demo`: a shop and its queue, on a PostgreSQL of their own, told step by step with what really happened.

Every claim is checked when it is made, and the book (what was sent and how it should end) is compared with the archive
and with what the receiver of the webhooks wrote down. Files: stage (where it plays), book; receiver, a program of its
own, and partner, which gives it orders; crew (the workers), loyalty (their handler); spark, the session of the last
scenes; the others have the scenes.
"""
