"""report.json: what the launcher adds to it, and its table.

Worker 0 writes the report at the end of a good run. Where processes failed the launcher adds its events; where there
is no report, because worker 0 did not come so far, it writes a small one that says what happened.
"""

import collections.abc
import dataclasses
import json
import pathlib
import typing

from launcher.errors import LaunchError
from launcher.placement import size
from launcher.settings import Settings
from launcher.supervisor import Outcome

NAME = "report.json"
METRICS = "metrics.jsonl"

Report = dict[str, typing.Any]


def read(folder: pathlib.Path) -> Report | None:
    """The report, or None where there is none that can be read."""
    try:
        report = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def complete(folder: pathlib.Path, settings: Settings, outcome: Outcome) -> Report | None:
    """The report in `folder`, with the launcher's events where there are any: then the file is written anew."""
    report = read(folder)
    if not outcome.events and outcome.exit_status == 0:
        return report
    if report is None:
        report = {"mode": settings.mode, "servers": settings.servers, "workers": settings.workers,
                  "seconds": round(outcome.seconds, 3)}
    report["exit_status"] = outcome.exit_status
    report["events"] = [*report.get("events", []), *map(dataclasses.asdict, outcome.events)]
    path, draft = folder / NAME, folder / f"{NAME}.tmp"
    try:
        draft.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise LaunchError(f"{path}: cannot be written: {error.strerror}") from None
    return report


def table(report: Report) -> str:
    """A line a number; what the run has not got is left out."""
    return "\n".join(f"{name:<22}{value}" for name, value in _rows(report) if value)


def _rows(report: Report) -> collections.abc.Iterator[tuple[str, str]]:
    shares = report.get("time_shares") or {}

    def text(key: str, form: typing.Callable[[typing.Any], str] = str, of: Report = report) -> str:
        return "" if of.get(key) is None else form(of[key])

    def percent(share: float) -> str:
        return f"{100 * share:.1f} %"

    def measured(what: str, unit: str) -> str:
        mean = text(f"{what}_mean", "mean {:.2f}".format)
        return mean and f"{mean}, max {report.get(f'{what}_max')} {unit}"

    yield "mode", text("mode")
    yield "servers", text("servers")
    yield "workers", text("workers")
    yield "steps", text("steps")
    yield "seconds", text("seconds", "{:.2f}".format)
    yield "test accuracy", text("test_accuracy", lambda share: f"{100 * share:.2f} %")
    yield "test loss", text("test_loss", "{:.4f}".format)
    yield "samples/s", text("samples_per_second", "{:.0f}".format)
    for part in ("compute", "communication", "waiting", "data", "evaluation"):
        yield part, text(part, percent, shares)
    yield "bytes pushed", text("bytes_pushed", size)
    yield "bytes pulled", text("bytes_pulled", size)
    yield "staleness", measured("staleness", "clocks")
    yield "update lag", measured("update_lag", "updates")
    for event in report.get("events", []):
        yield "event", f"{event['seconds']:.1f} s: {event['what']}"
    yield "weights digest", text("weights_digest")
