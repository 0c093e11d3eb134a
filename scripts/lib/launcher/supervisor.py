"""Joins the children, the policy, our own signals and the screen in one loop, on the launcher's only thread.

Nothing is polled: the loop sleeps until a pipe has something, a child has ended, a signal has come or the policy's
deadline is due. However it is left, no child lives on.
"""

import collections.abc
import contextlib
import dataclasses
import functools
import os
import pathlib
import selectors
import signal
import time

from launcher.child import Child
from launcher.plan import Spec
from launcher.policy import Failure, Event, Limits, Member, Policy
from launcher.screen import Screen

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class Outcome:
    exit_status: int
    failure: Failure | None
    interrupted_by: signal.Signals | None
    events: tuple[Event, ...]
    seconds: float


@contextlib.contextmanager
def signal_pipe() -> collections.abc.Iterator[int]:
    """A pipe that gives a byte for each signal that asks us to end. One that was ignored at our start stays so."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    handlers = {number: signal.getsignal(number) for number in FORWARDED}
    wakeup = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        for number, handler in handlers.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        yield read_end
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(read_end)
        os.close(write_end)


class Supervisor:
    """Runs one job. Used once."""

    def __init__(self, screen: Screen, limits: Limits) -> None:
        self._screen = screen
        self._limits = limits
        self._selector = selectors.DefaultSelector()
        self._children: dict[str, Child] = {}
        self._ended: list[Child] = []

    def run(self, specs: collections.abc.Sequence[Spec], logs: pathlib.Path) -> Outcome:
        """Starts every process and returns when the last one has ended. LaunchError where one cannot be started."""
        with signal_pipe() as signals, self._selector:
            start = time.monotonic()
            policy = Policy(map(_member, specs), self._limits, start)
            self._watch(signals, functools.partial(self._take_signals, signals, policy))
            try:
                for spec in specs:
                    self._start(spec, logs)
                while not policy.over:
                    self._turn(policy)
            finally:
                for child in self._children.values():
                    child.kill(self._limits.kill)
            return Outcome(policy.exit_status, policy.failure, policy.interrupted_by, tuple(policy.events),
                           time.monotonic() - start)

    def _start(self, spec: Spec, logs: pathlib.Path) -> None:
        child = self._children[spec.name] = Child(spec, logs / spec.file_name)
        self._watch(child.pidfd, functools.partial(self._ended.append, child))
        self._watch(child.output_pipe, functools.partial(self._show_output, child))
        if child.progress_pipe >= 0:
            self._watch(child.progress_pipe, functools.partial(self._show_progress, child))

    def _turn(self, policy: Policy) -> None:
        for key, _ in self._selector.select(_remaining(policy.deadline)):
            key.data()
        self._reap(policy)
        order = policy.order(time.monotonic())
        if order is not None:
            for child in self._children.values():
                child.send(order)

    def _reap(self, policy: Policy) -> None:
        """Of those that ended in the same turn one that a signal ended is the likelier cause of the others' ends."""
        ends = []
        for child in self._ended:
            if child.progress_pipe >= 0:
                self._show_progress(child)
            self._forget(child.pidfd, child.output_pipe, child.progress_pipe)
            returncode, rest = child.reap()
            self._screen.output(child.spec, rest)
            del self._children[child.spec.name]
            ends.append((child, returncode))
        self._ended.clear()
        for child, returncode in sorted(ends, key=lambda end: end[1] >= 0):
            policy.exited(child.spec.name, returncode, child.error, time.monotonic())

    def _show_output(self, child: Child) -> None:
        shown = child.output()
        if shown is None:
            self._forget(child.output_pipe)
        else:
            self._screen.output(child.spec, shown)

    def _show_progress(self, child: Child) -> None:
        shown = child.progress()
        if shown is None:
            self._forget(child.progress_pipe)
        else:
            self._screen.progress_lines(shown)

    def _take_signals(self, signals: int, policy: Policy) -> None:
        for number in os.read(signals, 64):
            if number in FORWARDED:
                self._screen.say(_about_signal(signal.Signals(number), policy))
                policy.interrupted(number, time.monotonic())

    def _watch(self, file: int, action: collections.abc.Callable[[], None]) -> None:
        self._selector.register(file, selectors.EVENT_READ, action)

    def _forget(self, *files: int) -> None:
        for file in files:
            with contextlib.suppress(KeyError, ValueError):  # Forgotten at its end, or never there.
                self._selector.unregister(file)


def _member(spec: Spec) -> Member:
    return Member(spec.name, spec.role == "worker", (spec.role, spec.rank) == ("server", 0))


def _remaining(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _about_signal(number: signal.Signals, policy: Policy) -> str:
    if policy.interrupted_by is None:
        return f"{number.name}: ending every process; once more kills them"
    return f"{number.name}: killing every process"
