"""Traces: the recording of a trace, which is its object "acs". The events before it, most of a large file, are not read."""
import json
import mmap
import re

FORMAT = 1
PARTS = ("labels", "ops", "summary", "findings", "pairs", "kernels")
_START = re.compile(rb'"acs"\s*:\s*(?=\{\s*"format")')  # no text in a string: its quotes have a backslash
_PAGE = re.compile(rb"^\s*<!doctype html", re.IGNORECASE)


CUT = "it is cut off; did the program end before acs_close?"


class NoTrace(Exception):
    """A file without a recording that can be read. The text says why."""


class Trace:
    """A recording, and its text as it stands in the file."""

    def __init__(self, acs, text):
        self.acs, self.text = acs, text


def _wrong_json(error, length, before=0):
    """Why a text of so many characters is no JSON."""
    if error.pos + 16 >= length or error.msg.startswith("Unterminated"):
        return NoTrace(CUT)
    return NoTrace("it is not valid JSON at character %d: %s" % (before + error.pos, error.msg))


def _why_none(text):
    """Why a file without the object has none."""
    if not text.strip():
        return "it is empty"
    if _PAGE.match(text[:200]):
        return "it is a page already; acs-report takes the file of ACS_TRACE"
    if not re.match(rb"\s*[\[{]", text[:200]):
        return "it is not JSON; acs-report takes the file of ACS_TRACE"
    if b'"traceEvents"' not in text[:1 << 20]:
        return 'it is not a trace: it has no "traceEvents"'
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return str(_wrong_json(error, len(text)))
    except (UnicodeDecodeError, RecursionError):
        return "it is not valid JSON"
    return 'it has no object "acs": another program wrote it'


def _object_in(text, start):
    """The object that begins here. The bytes behind it close the trace."""
    try:
        rest = text[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoTrace("it is not UTF-8 at byte %d" % (start + error.start)) from None
    try:
        found, end = json.JSONDecoder().raw_decode(rest)
    except json.JSONDecodeError as error:
        raise _wrong_json(error, len(rest), start) from None
    return Trace(_checked(found), rest[:end])


def _checked(acs):
    """A recording whose parts are there."""
    if acs.get("format") != FORMAT:
        raise NoTrace("its recording has format %s; this acs-report reads format %d" % (acs.get("format"), FORMAT))
    missing = [name for name in PARTS if name not in acs]
    if missing:
        raise NoTrace("its recording has no %s" % ", ".join(missing))
    return acs


def read(path):
    """The recording of a trace. NoTrace, or OSError."""
    with open(path, "rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                starts = [found.end() for found in _START.finditer(mapped)]
                if starts:
                    return _object_in(mapped, starts[-1])
                text = mapped[:]
        except (ValueError, OSError):  # empty, or a pipe
            text = file.read()
    starts = [found.end() for found in _START.finditer(text)]
    if not starts:
        raise NoTrace(_why_none(text))
    return _object_in(text, starts[-1])
