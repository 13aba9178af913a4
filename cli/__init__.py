"""The command line: show, build, check, explain, cache, doctor, completion."""
