"""Who is told to end, and when, and what the job's exit status is: a state machine without processes and clock.

    RUNNING ──a process fails──▶ SETTLING ──settle is over──▶ ENDING ──grace is over──▶ KILLING ──▶ LOST
       │                                                        ▲  ▲         (a second signal: at once)
       ├──the job is over for some──▶ CLOSING ──close is over───┘  │
       └──SIGINT, SIGTERM or SIGHUP────────────────────────────────┘

SETTLING leaves time for the others to hear from the coordinator what happened, and to say so. CLOSING begins when the
last worker or the coordinator has ended well: the rest follows within seconds, or hangs. ENDING has sent SIGTERM to
whoever lives, KILLING SIGKILL; LOST gives up on what even SIGKILL does not end (a process inside a stuck disk). Every
stage but RUNNING has a limit. Only the first failure counts: the others are its consequences.
"""

import collections.abc
import dataclasses
import enum
import signal

from launcher.errors import exit_status


class Stage(enum.Enum):
    RUNNING = enum.auto()
    SETTLING = enum.auto()
    CLOSING = enum.auto()
    ENDING = enum.auto()
    KILLING = enum.auto()
    LOST = enum.auto()


@dataclasses.dataclass(frozen=True)
class Limits:
    grace: float  # seconds from SIGTERM to SIGKILL
    settle: float = 3.0
    close: float = 30.0
    kill: float = 5.0


@dataclasses.dataclass(frozen=True)
class Member:
    """What counts here of a process."""

    name: str
    is_worker: bool
    is_coordinator: bool = False


@dataclasses.dataclass(frozen=True)
class Event:
    seconds: float  # since the start
    what: str


@dataclasses.dataclass(frozen=True)
class Failure:
    name: str
    status: int  # as a shell has it
    what: str  # one line
    error: str  # the process's last line about an error, or ""

    def __str__(self) -> str:
        return f"{self.what}: {self.error}" if self.error else self.what


def how_it_ended(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with status {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


class Policy:
    """Told what happens and when. `order` says what every living process is sent, `deadline` when to ask for it."""

    def __init__(self, members: collections.abc.Iterable[Member], limits: Limits, now: float) -> None:
        self._living = list(members)
        self._limits = limits
        self._start = now
        self._order: signal.Signals | None = None
        self.stage = Stage.RUNNING
        self.deadline: float | None = None
        self.failure: Failure | None = None
        self.interrupted_by: signal.Signals | None = None
        self.events: list[Event] = []

    @property
    def over(self) -> bool:
        return not self._living or self.stage is Stage.LOST

    @property
    def exit_status(self) -> int:
        if self.failure:
            return self.failure.status
        return 128 + self.interrupted_by if self.interrupted_by else 0

    def exited(self, name: str, returncode: int, error: str, now: float) -> None:
        """A process has ended; `returncode` as subprocess has it."""
        member = next(member for member in self._living if member.name == name)
        self._living.remove(member)
        if returncode != 0:
            self._ended_badly(member, returncode, error, now)
        elif self.stage is Stage.RUNNING and self._job_is_over(member):
            self._enter(Stage.CLOSING, now, self._limits.close)

    def interrupted(self, number: int, now: float) -> None:
        """A signal that asks the launcher to end."""
        if self.interrupted_by is None:
            self.interrupted_by = signal.Signals(number)
            self._note(f"interrupted by {self.interrupted_by.name}", now)
            if self.stage in (Stage.RUNNING, Stage.SETTLING, Stage.CLOSING):
                self._end(now)
        elif self.stage is not Stage.KILLING:
            self._kill(now)

    def order(self, now: float) -> signal.Signals | None:
        """What every living process is to be sent now; each order is given once."""
        if self.deadline is not None and now >= self.deadline:
            self._time_is_up(now)
        order, self._order = self._order, None
        return order

    def _job_is_over(self, ended_well: Member) -> bool:
        return ended_well.is_coordinator or not any(member.is_worker for member in self._living)

    def _ended_badly(self, member: Member, returncode: int, error: str, now: float) -> None:
        if self.stage in (Stage.ENDING, Stage.KILLING):
            if self.stage is Stage.KILLING and returncode == -signal.SIGKILL:
                self._note(f"{member.name} did not end and was killed", now)
            return
        failure = Failure(member.name, exit_status(returncode), f"{member.name} {how_it_ended(returncode)}", error)
        self._note(str(failure), now)
        if self.failure is None:
            self.failure = failure
            self._enter(Stage.SETTLING, now, self._limits.settle)

    def _time_is_up(self, now: float) -> None:
        if self.stage is Stage.CLOSING:
            names = ", ".join(member.name for member in self._living)
            what = f"{names} did not end within {self._limits.close:g} s of the end of the job"
            self.failure = Failure(self._living[0].name, 1, what, "")
            self._note(what, now)
        if self.stage in (Stage.CLOSING, Stage.SETTLING):
            self._end(now)
        elif self.stage is Stage.ENDING:
            self._kill(now)
        elif self.stage is Stage.KILLING:
            self._note(f"{', '.join(member.name for member in self._living)} cannot be killed", now)
            self._enter(Stage.LOST, now, None)

    def _end(self, now: float) -> None:
        self._order = signal.SIGTERM
        self._enter(Stage.ENDING, now, self._limits.grace)

    def _kill(self, now: float) -> None:
        self._order = signal.SIGKILL
        self._enter(Stage.KILLING, now, self._limits.kill)

    def _enter(self, stage: Stage, now: float, limit: float | None) -> None:
        self.stage = stage
        self.deadline = None if limit is None else now + limit

    def _note(self, what: str, now: float) -> None:
        self.events.append(Event(now - self._start, what))
