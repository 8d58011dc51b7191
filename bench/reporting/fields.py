"""Typed access to JSON that says which file and which field is not as it must be.

Used by all readers of result files. A field that is absent is an error only where need() asks for it; fields that
nobody asks for are never looked at, so that programs may add some.
"""
import json
import math

from .errors import BadInput

NUMBER = (int, float)
_NAMES = {str: "a text", dict: "an object", list: "a list", NUMBER: "a number"}


class Fields:
    """An object of a JSON file, with the way to it: `x.json: rows[3].runners[0]`."""

    def __init__(self, data, file, path=""):
        self.file, self.path = file, path
        if not isinstance(data, dict):
            raise BadInput(f"{file}: {path or 'the file'} must be an object")
        self.data = data

    def _where(self, name):
        return f"{self.path}.{name}" if self.path else name

    def refuse(self, name, why):
        raise BadInput(f"{self.file}: {self._where(name)} {why}")

    def _typed(self, name, kind):
        value = self.data[name]
        right = isinstance(value, kind) and not isinstance(value, bool)
        if right and kind is NUMBER and not math.isfinite(value):
            right = False
        if not right:
            self.refuse(name, f"must be {_NAMES[kind]}, not {json.dumps(value)[:40]}")
        return value

    def need(self, name, kind):
        if name not in self.data:
            self.refuse(name, "is missing")
        return self._typed(name, kind)

    def get(self, name, kind, default=None):
        return self._typed(name, kind) if name in self.data and self.data[name] is not None else default

    def positive(self, name):
        """A number above zero, which others are divided by."""
        value = self.need(name, NUMBER)
        if value <= 0:
            self.refuse(name, f"must be more than 0, not {value}")
        return value

    def measure(self, name):
        """A number, or None where it is absent or, as programs write what they could not compute, negative."""
        value = self.get(name, NUMBER)
        return value if value is not None and value >= 0 else None

    def object(self, name):
        return Fields(self.need(name, dict), self.file, self._where(name))

    def objects(self, name):
        return [Fields(item, self.file, f"{self._where(name)}[{k}]") for k, item in enumerate(self.need(name, list))]

    def numbers(self, name):
        values = self.get(name, list, [])
        for k, value in enumerate(values):
            if not isinstance(value, NUMBER) or isinstance(value, bool) or not math.isfinite(value):
                self.refuse(f"{name}[{k}]", f"must be a number, not {json.dumps(value)[:40]}")
        return values


def parse(text, shown):
    """The object in a file's text; `shown` is what errors call the file."""
    try:
        return Fields(json.loads(text), shown)
    except ValueError as error:
        raise BadInput(f"{shown}: is not JSON: {error}") from None
