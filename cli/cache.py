"""`metaphrase cache`: where compiled programs are kept, how many, how large; and removing them.

In: `show` or `clear`. Out: a report on stdout. Example: `metaphrase cache clear`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from ..runtime import cache as disk
from .console import answer, table


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "cache",
        help="look at or clear the compiled programs kept on disk",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    directory = Path(disk.cache_directory())
    if options.action == "clear":
        removed = disk.Cache(directory).clear() if directory.exists() else 0
        said = f"removed {removed} compiled program{'' if removed == 1 else 's'} from {directory}"
        answer(options, {"directory": str(directory), "removed": removed}, lambda: print(said))
        return 0
    entries = disk.Cache(directory).entries() if directory.exists() else []
    plans = [len(list(path.iterdir())) for _, _, path in entries if path.name.startswith(disk.TEXTS)]
    total = sum(size for _, size, _ in entries)
    rows = [
        ["directory", str(directory)],
        ["enabled", "yes" if disk.enabled() else "no (METAPHRASE_CACHE=0)"],
        ["programs", str(len(entries) - len(plans))],
        ["plans of calls", str(sum(plans))],
        ["size", f"{total / (1 << 20):.1f} MiB of {disk.size_limit() / (1 << 20):.0f} MiB"],
    ]
    if entries:
        rows.append(["last used", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entries[-1][0]))])
    data = {
        "directory": str(directory),
        "enabled": disk.enabled(),
        "programs": len(entries) - len(plans),
        "plans": sum(plans),
        "bytes": total,
        "limit": disk.size_limit(),
        "last_used": entries[-1][0] if entries else None,
    }
    answer(options, data, lambda: table(rows))
    return 0
