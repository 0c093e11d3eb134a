"""Bytes that a program wrote -> lines that a terminal can show.

A program may write anything: binary data, escape sequences, a gigabyte without a newline. What is kept of a line is
bounded, and what could steer a terminal is shown as \\xNN. The log files get the bytes as they are.
"""

import re
import typing

SHOWN_AT_MOST = 2000  # bytes of a line

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\t")}
_GLOG = re.compile(r"([IWEF])\d{4,8} [\d:.]+ +\d+ [^\]\s]+:\d+\] (.*)", re.S)
_WORDS = {"I": "", "W": "warning: ", "E": "error: ", "F": "error: "}


def readable(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").translate(_CONTROLS)


class LineSplitter:
    """Cuts a stream into lines, and lines into what is shown of them."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
        *complete, rest = data.split(b"\n")
        lines = []
        for piece in complete:
            self._add(piece)
            lines.append(self._take())
        self._add(rest)
        return lines

    def finish(self) -> list[str]:
        """The line that the end of the stream completes."""
        return [self._take()] if self._length else []

    def _add(self, piece: bytes) -> None:
        self._kept += piece[: SHOWN_AT_MOST - len(self._kept)]
        self._length += len(piece)

    def _take(self) -> str:
        cut = self._length - len(self._kept)
        text = readable(bytes(self._kept).removesuffix(b"\r"))
        self._kept.clear()
        self._length = 0
        return f"{text} … ({cut} more bytes)" if cut else text


class Line(typing.NamedTuple):
    severity: str  # I, W, E or F as glog has them; "" for a line that glog did not write
    text: str

    @property
    def is_error(self) -> bool:
        return self.severity in ("E", "F")

    def __str__(self) -> str:
        return _WORDS.get(self.severity, "") + self.text


def parse(text: str, who: str = "") -> Line:
    """A line less glog's head (date, time, thread, place) and less the name that the process puts in front."""
    match = _GLOG.fullmatch(text)
    if not match:
        return Line("", text)
    # Before it has a rank a process calls itself by its role alone.
    for name in (who, who.partition(" ")[0]):
        if name and match[2].startswith(f"{name}: "):
            return Line(match[1], match[2][len(name) + 2:])
    return Line(match[1], match[2])
