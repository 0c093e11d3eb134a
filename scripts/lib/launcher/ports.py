"""Free ports that a restarted process can have again.

They lie below the range from which the system hands out ports to outgoing connections, so none of those can take one
while its owner is being restarted. Another program still can, between our look and the bind: the caller tries again.
"""

import collections.abc
import contextlib
import errno
import pathlib
import random
import socket

from launcher.errors import LaunchError

EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 10240  # Below lie the ports of well-known services.
HIGHEST = 65535
TRIES = 2000


def port_range(ephemeral: str) -> range:
    """Where to look, given the system's range as "LOW HIGH": below it or above it, whichever is larger."""
    low, high = map(int, ephemeral.split())
    below, above = range(LOWEST, low), range(max(high + 1, LOWEST), HIGHEST + 1)
    return max(below, above, key=len) or range(LOWEST, HIGHEST + 1)


def is_free(host: str, port: int) -> bool:
    """Whether nobody holds the port on any address of the host. A host without addresses is the program's to name."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return True
    with contextlib.ExitStack() as stack:
        for family, kind, protocol, _, address in found:
            try:
                stack.enter_context(socket.socket(family, kind, protocol)).bind(address)
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    return False
    return True


def free_blocks(
    hosts: collections.abc.Collection[str],
    sizes: collections.abc.Sequence[int],
    free: collections.abc.Callable[[str, int], bool] = is_free,
    within: range | None = None,
) -> list[int]:
    """For each size the first of so many consecutive ports that are free on all `hosts`; blocks do not overlap."""
    within = within or port_range(EPHEMERAL.read_text(encoding="ascii"))
    taken: set[int] = set()
    blocks = []
    for size in sizes:
        for _ in range(TRIES):
            first = random.choice(within)
            block = range(first, first + size)
            if block[-1] not in within or not taken.isdisjoint(block):
                continue
            if all(free(host, port) for host in hosts for port in block):
                break
        else:
            where = f"on {' and '.join(sorted(hosts))} from {within[0]} to {within[-1]}"
            raise LaunchError(f"no {size} free port{'s side by side were' if size > 1 else ' was'} found {where}")
        taken.update(block)
        blocks.append(first)
    return blocks
