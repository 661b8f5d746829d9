"""One I/O-free Op per SQL function, and the two runners that carry it out."""
