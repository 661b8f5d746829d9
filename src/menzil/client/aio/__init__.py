"""What a client can do, one module for each subject. The sync form is written from the async one."""
