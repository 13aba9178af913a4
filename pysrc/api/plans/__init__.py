"""Plans: what calls of jitted functions do, kept on disk, so that a process that comes later translates nothing."""
