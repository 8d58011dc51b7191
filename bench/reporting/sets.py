"""A set of results: the files that a run of benchmarks left, in a directory or packed as <name>.tar.xz.

Whoever reads results gets them from here, as texts. Archives are read in memory; nothing is unpacked to the disk.
"""
import io
import lzma
import os
import re
import tarfile

from .errors import BadInput

ENDING = ".tar.xz"
_KEPT = (".json", ".txt")
_NAME = re.compile(r"(?P<gpu>[\w.]+(?:-[\w.]+)*?)-(?P<date>\d{4}-\d{2}-\d{2})(?P<suffix>-[\w.-]+)?", re.ASCII)


class ResultSet:
    """`texts`: {file name: text}. `name` is that of the directory, or of the archive without its ending."""

    def __init__(self, path):
        self.path = os.path.normpath(path)
        self.name = os.path.basename(os.path.abspath(path))
        packed = self.name.endswith(ENDING)
        if packed:
            self.name = self.name[:-len(ENDING)]
        elif not os.path.isdir(path):
            raise BadInput(f"{path}: is neither a directory nor an archive *{ENDING}")
        raw = _of_archive(path) if packed else _of_directory(path)
        self.texts = {name: self._decoded(name, raw[name]) for name in sorted(raw)}

    def _decoded(self, name, data):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.where(name)}: cannot be read: {error}") from None

    def where(self, name):
        """What errors call a file of the set."""
        return os.path.join(self.path, name)

    def names(self, ending):
        return [name for name in self.texts if name.endswith(ending)]

    def parts(self):
        """The name's parts <gpu>-<date>[-<suffix>], or None where it has another form."""
        return _NAME.fullmatch(self.name)


def _of_directory(path):
    raw = {}
    for name in os.listdir(path):
        if name.endswith(_KEPT):
            with open(os.path.join(path, name), "rb") as file:
                raw[name] = file.read()
    return raw


def _of_archive(path):
    try:
        with tarfile.open(path, "r:xz") as archive:
            return {os.path.basename(member.name): archive.extractfile(member).read()
                    for member in archive if member.isfile()}
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise BadInput(f"{path}: is no archive *{ENDING}: {error}") from None


def pack(results, path):
    """Writes a set as an archive. The same texts give the same archive: it has no times and no owners."""
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name, text in results.texts.items():
            data = text.encode("utf-8")
            member = tarfile.TarInfo(f"{results.name}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def of_root(root):
    """{gpu: its sets, newest first} of a folder with archives and directories named <gpu>-<date>[-<suffix>]."""
    if not os.path.isdir(root):
        raise BadInput(f"{root}: is not a directory")
    found = {}
    for name in sorted(os.listdir(root)):
        path = os.path.join(root, name)
        if not (os.path.isdir(path) or name.endswith(ENDING)):
            continue
        results = ResultSet(path)
        parts = results.parts()
        if not parts:
            raise BadInput(f"{path}: is not named <gpu>-<year>-<month>-<day>[-<suffix>]")
        found.setdefault(parts["gpu"], []).append((parts["date"], parts["suffix"] or "", results))
    if not found:
        raise BadInput(f"{root}: has no set of results")
    return {gpu: [results for *_, results in sorted(sets, key=lambda s: s[:2], reverse=True)]
            for gpu, sets in sorted(found.items())}
