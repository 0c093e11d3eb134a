"""From the command line to the job's exit status."""

import dataclasses
import errno
import os
import signal
import typing

from launcher import arguments, placement, plan, prepare, report, results, settings
from launcher.arguments import Arguments
from launcher.errors import LaunchError
from launcher.policy import Limits
from launcher.results import Results
from launcher.screen import Screen
from launcher.settings import Settings
from launcher.supervisor import Outcome, Supervisor

ATTEMPTS = 3  # Where somebody takes a port between our look and the program's bind.


def main(argv: list[str]) -> int:
    given = arguments.parse(argv)
    screen = Screen()
    signal.signal(signal.SIGTERM, lambda *_: _leave(signal.SIGTERM))  # Until the job has its own way with signals.
    try:
        return _run(given, screen)
    except LaunchError as error:
        screen.fault(str(error))
        return error.status
    except KeyboardInterrupt:
        screen.fault("interrupted")
        return 128 + signal.SIGINT
    finally:
        screen.close_bar()


def _leave(number: signal.Signals) -> typing.NoReturn:
    raise SystemExit(128 + number)


def _run(given: Arguments, screen: Screen) -> int:
    if given.prepare:
        prepare.build(given.preset, screen)
    if given.page:
        screen.page(settings.ask(given.worker, ["--config", str(given.config), *given.flags]))
        return 0
    effective = settings.read(given.worker, given.config, given.flags)
    given = dataclasses.replace(given, flags=(*given.flags, *prepare.data_flags(effective)))
    if given.prepare:
        prepare.data(effective, screen)
    if given.dry_run:  # Behind the data, whose shape the model's size depends on.
        return _dry_run(given, effective, screen)
    with results.open_folder(given) as folder:
        return _finish(_job(given, effective, folder, screen), effective, folder, screen)


def _dry_run(given: Arguments, effective: Settings, screen: Screen) -> int:
    holdings = settings.ask_json(given.worker, ["--config", str(given.config), *given.flags, "--print-placement"])
    folder = given.output_dir or results.default_path(given.config)
    screen.page(placement.text(plan.make(given, effective, folder.absolute(), plan.random_job()), holdings))
    return 0


def _job(given: Arguments, effective: Settings, folder: Results, screen: Screen) -> Outcome:
    screen.say(f"{about(effective)}; logs in {folder.logs}")
    if effective.warning:
        screen.say(f"warning: {effective.warning}")
        screen.hide(f"warning: {effective.warning}")  # Each process says it again.
    job = plan.random_job()
    for attempt in range(ATTEMPTS):
        planned = plan.make(given, effective, folder.path.absolute(), job)
        outcome = Supervisor(screen, Limits(effective.grace_seconds)).run(planned.specs, folder.logs)
        if attempt + 1 < ATTEMPTS and lost_a_port(outcome, planned.chosen_ports):
            screen.say("another program took a port in between; starting again with others")
        else:
            break
    screen.close_bar()
    return outcome


def about(effective: Settings) -> str:
    def count(number: int, what: str) -> str:
        return f"{number} {what}{'' if number == 1 else 's'}"

    servers = f"{count(effective.servers, 'server')} and " if effective.servers else ""
    return f"{effective.mode}: {servers}{count(effective.workers, 'worker')}"


def lost_a_port(outcome: Outcome, chosen: frozenset[int]) -> bool:
    """Whether the job failed because a server could not have a port that we, not the user, had chosen."""
    failure = outcome.failure
    if failure is None or outcome.interrupted_by is not None or os.strerror(errno.EADDRINUSE) not in failure.error:
        return False
    return any(f":{port}" in failure.error for port in chosen)


def _finish(outcome: Outcome, effective: Settings, folder: Results, screen: Screen) -> int:
    content = report.complete(folder.path, effective, outcome)
    if content is not None and outcome.exit_status == 0:
        screen.page(report.table(content))
    screen.say(f"results in {folder.path}")
    if outcome.failure:
        screen.fault(f"failed: {outcome.failure}")
    elif outcome.interrupted_by:
        screen.fault(f"interrupted by {outcome.interrupted_by.name}; every process has ended")
    return outcome.exit_status
