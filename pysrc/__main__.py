"""`python -m metaphrase` is the command `metaphrase`.

In: command-line arguments. Out: its exit status. Example: `python -m metaphrase doctor`.
"""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
