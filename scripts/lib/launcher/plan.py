"""Which processes a job has on this machine, and the command line of each: a pure function."""

import collections.abc
import dataclasses
import pathlib
import secrets

from launcher import ports
from launcher.arguments import Arguments, without_flag
from launcher.settings import Settings


@dataclasses.dataclass(frozen=True)
class Spec:
    role: str
    rank: int
    command: tuple[str, ...]
    reports_progress: bool = False

    @property
    def name(self) -> str:
        return f"{self.role} {self.rank}"

    @property
    def file_name(self) -> str:
        return f"{self.role}-{self.rank}.log"


@dataclasses.dataclass(frozen=True)
class Plan:
    specs: tuple[Spec, ...]
    chosen_ports: frozenset[int]  # Chosen here, not configured: another try may choose others.


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def random_job() -> str:
    """So that a process left over from another run can never join this one."""
    return f"run-{secrets.token_hex(8)}"


def make(
    arguments: Arguments,
    settings: Settings,
    output_dir: pathlib.Path,
    job: str,
    free_blocks: collections.abc.Callable[[set[str], list[int]], list[int]] = ports.free_blocks,
) -> Plan:
    """Ports that the config leaves open are looked for; `job` counts where it names none."""
    flags = arguments.flags
    data_ports: list[int] = []
    chosen: set[int] = set()
    if settings.uses_network:
        host, port = host_and_port(settings.coordinator)
        open_port = [1] if port == 0 else []
        has_data_port = "cluster.data_port" not in settings.inactive
        open_data = [settings.shards] * settings.servers if has_data_port and settings.data_port == 0 else []
        found = free_blocks({host, settings.bind}, [*open_port, *open_data])
        if open_port:
            port = found.pop(0)
            flags = (*without_flag(flags, "--cluster.coordinator"), "--cluster.coordinator", f"{host}:{port}")
            chosen.add(port)
        chosen.update(first + shard for first in found for shard in range(settings.shards))
        if has_data_port:
            # A configured port is the first server's; the others on this machine follow it.
            data_ports = found or [settings.data_port + i * settings.shards for i in range(settings.servers)]
            flags = without_flag(flags, "--cluster.data_port")
        if not settings.job:
            flags = (*without_flag(flags, "--cluster.job"), "--cluster.job", job)
    config = ("--config", str(arguments.config))

    def spec(role: str, program: pathlib.Path, rank: int, *own: str) -> Spec:
        command = (str(program), *config, *flags, "--rank", str(rank), *own, "--start-count", "0")
        return Spec(role, rank, command, reports_progress=(role, rank) == ("worker", 0))

    def data_port(rank: int) -> tuple[str, ...]:
        return ("--cluster.data_port", str(data_ports[rank])) if data_ports else ()

    servers = [spec("server", arguments.server, i, *data_port(i)) for i in range(settings.server_processes)]
    workers = [
        spec("worker", arguments.worker, r, "--output-dir", str(output_dir)) for r in range(settings.workers)]
    return Plan((*servers, *workers), frozenset(chosen))
