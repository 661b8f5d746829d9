"""menzil inside frameworks that other people wrote: a package for each, and none is imported unless it is used."""
