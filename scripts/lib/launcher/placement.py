"""--dry-run: what would be started, and which server would hold how much."""

import collections.abc
import shlex
import typing

from launcher.errors import LaunchError
from launcher.plan import Plan

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Bytes as a person reads them."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"


def text(plan: Plan, placement: dict[str, typing.Any]) -> str:
    """`placement` is what parley-worker --print-placement says."""
    try:
        return "\n".join([*_holdings(placement), "", *_commands(plan)])
    except (KeyError, TypeError) as error:
        raise LaunchError(f"parley-worker --print-placement: {error!r} in its answer") from None


def _holdings(placement: dict[str, typing.Any]) -> collections.abc.Iterator[str]:
    servers = placement["servers"]
    yield f"{len(placement['tensors'])} tensors"
    if not servers:
        yield "no servers: each worker holds all parameters"
        return
    yield f"{'server':<10}{'parameters':>12}{'slices':>8}{'memory':>12}"
    for server in servers:
        yield (f"{server['rank']:<10}{size(server['bytes']):>12}{server['slices']:>8}"
               f"{size(server['memory_bytes']):>12}")
    # Infinite, which JSON has no number for, where a shard holds nothing.
    skew = placement["skew"]
    yield "skew: a shard holds nothing" if skew is None else f"skew {skew:.3f} (largest over smallest shard)"


def _commands(plan: Plan) -> collections.abc.Iterator[str]:
    yield f"{len(plan.specs)} processes would be started; ports and the job's name are drawn anew each time:"
    for spec in plan.specs:
        yield f"{spec.name} | {shlex.join(spec.command)}"
