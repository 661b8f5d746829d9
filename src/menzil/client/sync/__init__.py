# Written by tools/twins.py from ../aio/__init__.py. Change that file, then run: python tools/twins.py
"""What a client can do, one module for each subject. The sync form is written from the async one."""
