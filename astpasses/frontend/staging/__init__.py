"""One staging from its call to its closed Function: the session, its journal, the stager and its answer."""
