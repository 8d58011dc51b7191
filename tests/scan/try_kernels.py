#!/usr/bin/env python3
"""
Compares the footprints that acs-scan writes with what kernels do. It launches each kernel of PTX files many times, with
random arguments, and each byte that it touches must be in a segment of its footprint. Prints what is missing, and how
exact the footprints are. Ends with 1 where a byte was missing.
"""

import argparse
import collections
import ctypes
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tools"), HERE]
sys.dont_write_bytecode = True

from acs_scan import footprint, header, ptx  # noqa: E402 pylint: disable=wrong-import-position
import interpreter  # noqa: E402 pylint: disable=wrong-import-position
from launch import Launch  # noqa: E402 pylint: disable=wrong-import-position

_C = """
#include <acs.h>
#include "kernels.h"
const uint64_t oracle_whole = ACS_WHOLE_AT, oracle_escape = ACS_ESCAPE;
acs_footprint oracle_functions[100000];
const char *oracle_names[100000];
uint64_t oracle_count;
acs_status acs_declare(const acs_kernel *kernel, acs_footprint footprint, const void *user)
{
    (void)user;
    oracle_names[oracle_count] = kernel->name;
    oracle_functions[oracle_count++] = footprint;
    return ACS_OK;
}
size_t oracle_call(size_t which, const acs_footprint_input *in, acs_segment *out, size_t capacity)
{
    return oracle_functions[which](in, out, capacity);
}
/* What acs_scan.h learns of allocations: those of the last launch, as small as its accesses allow; or none. */
uint64_t oracle_known[3 * 64];
uint64_t oracle_known_count;
__attribute__((weak)) int acs_footprint_allocation(uint64_t address, uint64_t *first, uint64_t *bytes)
{
    for (uint64_t i = 0; i < oracle_known_count; i++)
        if (oracle_known[3 * i] == address) {
            *first = oracle_known[3 * i + 1];
            *bytes = oracle_known[3 * i + 2];
            return 1;
        }
    return 0;
}
const char *oracle_name(size_t which)
{
    return oracle_names[which];
}
"""
_READ, _WRITE, _ALL, _TOKEN = 1, 2, 1, 2
_FAR = 1 << 36               # an allocation is no larger


class _Input(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
                ("shared_bytes", ctypes.c_uint64), ("args", ctypes.POINTER(ctypes.c_void_p)), ("arg_count", ctypes.c_size_t),
                ("user", ctypes.c_void_p), ("arg_bytes", ctypes.POINTER(ctypes.c_uint32))]


class Segment(ctypes.Structure):
    """acs_segment."""
    _fields_ = [("base", ctypes.c_uint64), ("row_bytes", ctypes.c_uint64), ("rows", ctypes.c_uint64),
                ("pitch", ctypes.c_uint64), ("access", ctypes.c_uint8), ("extent", ctypes.c_uint8),
                ("device", ctypes.c_uint16), ("version", ctypes.c_uint32)]

    def last(self):
        return self.base + (self.rows - 1) * (self.pitch if self.rows > 1 else 0) + self.row_bytes - 1

    def bytes(self):
        return self.rows * self.row_bytes

    def holds(self, address, size):
        at = address - self.base
        if at < 0 or not self.rows:
            return False
        if self.rows > 1:
            at -= min(at // self.pitch, self.rows - 1) * self.pitch
        return at + size <= self.row_bytes


class Library:
    """The footprint functions of one header, compiled."""

    def __init__(self, text, folder, includes):
        with open(os.path.join(folder, "kernels.h"), "w", encoding="utf-8") as out:
            out.write(text)
        source, binary = os.path.join(folder, "kernels.c"), os.path.join(folder, f"k{time.monotonic_ns()}.so")
        with open(source, "w", encoding="utf-8") as out:
            out.write(_C)
        subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-O0", "-shared", "-fPIC", "-Wl,-Bsymbolic",
                        *("-I" + i for i in includes), "-I" + os.path.join(ROOT, "include"), "-I" + folder, source, "-o",
                        binary], check=True)
        self.loaded = ctypes.CDLL(binary)
        self.whole = ctypes.c_uint64.in_dll(self.loaded, "oracle_whole").value
        self.escape = ctypes.c_uint64.in_dll(self.loaded, "oracle_escape").value
        self.loaded.oracle_call.restype = ctypes.c_size_t
        self.loaded.oracle_name.restype = ctypes.c_char_p
        count = ctypes.c_uint64.in_dll(self.loaded, "oracle_count").value
        self.numbers = {self.loaded.oracle_name(ctypes.c_size_t(i)).decode(): i for i in range(count)}
        texts = dict(re.findall(r"\nstatic size_t (acs_scan_kernel_\w+)\((.*?\n\})", text, re.S))
        self.texts = {n: texts[f] for n, f in re.findall(r'\n    \{"([^"]+)", (\w+)\},', text)}

    def segments(self, number, grid, block, arguments, known=()):
        """The footprint of a launch, where these allocations are known: (address, first byte, bytes) of each."""
        ctypes.c_uint64.in_dll(self.loaded, "oracle_known_count").value = min(len(known), 64)
        table = (ctypes.c_uint64 * 192).in_dll(self.loaded, "oracle_known")
        for i, value in enumerate(v for one in known[:64] for v in one):
            table[i] = value
        buffers = [ctypes.create_string_buffer(a, max(len(a), 1)) for a in arguments]
        places = (ctypes.c_void_p * max(len(buffers), 1))(*(ctypes.addressof(b) for b in buffers))
        sizes = (ctypes.c_uint32 * max(len(buffers), 1))(*(len(a) for a in arguments))
        three = ctypes.c_uint32 * 3
        given = _Input(None, three(*grid), three(*block), 0, places, len(buffers), None, sizes)
        out = (Segment * 256)()
        count = self.loaded.oracle_call(ctypes.c_size_t(number), ctypes.byref(given), out, ctypes.c_size_t(256))
        if count > len(out):
            raise ValueError(f"a footprint of {count} segments")
        return list(out[:count])


# ------------------------------------------------------------------------------------------------------------- launches

_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100, 127, 128, -1)
_RARE = (255, 256, 1000, 1024, 65535, 65536, -2, -7, 1 << 30, (1 << 31) - 1, -(1 << 31), 1 << 20)
_BLOCKS = ((1, 1, 1), (5, 1, 1), (32, 1, 1), (64, 1, 1), (16, 4, 1), (8, 8, 2), (33, 1, 1), (4, 3, 2), (7, 2, 1), (1, 6, 1))


class Launches:
    """Random launches of one kernel."""

    def __init__(self, module, function, text, seed):
        self.function, self.random = function, random.Random(seed)
        self.pointers = sorted({(int(a), int(o)) for a, o in re.findall(r"acs_scan_address\(in, (\d+), (\d+)\)", text)})
        self.blocks = [b for b in _BLOCKS if self._allowed(b, module.most.get(function.name))]
        if function.threads:
            self.blocks = [function.threads]
        self.uses = self._uses()
        self.wide = sorted(place for place, kind in self.uses.items() if kind in ("u64", "b64", "s64"))
        self.known = self.pointers

    @staticmethod
    def _allowed(block, most):
        return not most or block[0] * block[1] * block[2] <= most[0] * most[1] * most[2]

    def _uses(self):
        """(argument, offset) -> type with which it is read."""
        places, found = {p.name: i for i, p in enumerate(self.function.parameters)}, {}
        for block in self.function.blocks:
            for one in block.instructions:
                if one.parts[0] == "ld" and "param" in one.parts:
                    name, _, offset = one.operands[1][1:-1].partition("+")
                    size = ptx.bits_of(one.parts[-1]) // 8
                    for i, _ in enumerate(re.findall(r"[^{},\s]+", one.operands[0])):
                        if name in places and not offset.startswith("%"):
                            found[places[name], int(offset or 0) + i * size] = one.parts[-1]
        return found

    def _number(self, style, threads):
        r = self.random
        if style == "threads" and r.random() < 0.8:
            return r.choice(threads) + r.choice((0, 0, 0, 0, 1, -1, 5, 100))
        if style == "small" and r.random() < 0.8:
            return r.randrange(1, 12)
        return r.choice(_RARE) if r.random() < (0.4 if style == "rare" else 0.03) else r.choice(_NUMBERS)

    def next(self):
        """(grid, block, bytes of the arguments). At times all arguments of eight bytes are addresses."""
        r = self.random
        self.pointers = sorted({*self.known, *self.wide}) if r.random() < 0.15 else self.known
        block = r.choice(self.blocks)
        grid = (r.choice((1, 1, 2, 3, 4)), r.choice((1, 1, 1, 2, 3)), r.choice((1, 1, 1, 1, 2)))
        axes = [g * b for g, b in zip(grid, block)]
        threads = [*axes, axes[0], axes[0] * axes[1] * axes[2], axes[0] * axes[1], block[0], grid[0]]
        style, same = r.choice(("threads", "threads", "small", "mix", "mix", "rare")), r.random() < 0.15
        common, arguments, number = self._number(style, threads), [], 0
        for i, parameter in enumerate(self.function.parameters):
            data = bytearray()
            for k in range(0, parameter.bytes, 4):
                data += (r.randrange(0, 5)).to_bytes(4, "little")
            data = data[:parameter.bytes]
            for (argument, offset), kind in self.uses.items():
                if argument == i and offset + ptx.bits_of(kind) // 8 <= parameter.bytes:
                    size = ptx.bits_of(kind) // 8
                    value = common if same else self._number(style, threads)
                    if kind[0] == "f":
                        value = interpreter.arithmetic.float_to_bits(8 * size, r.uniform(-4, 4))
                    data[offset:offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
            for argument, offset in self.pointers:
                if argument == i:
                    where = interpreter.pointer(number) if r.random() > 0.015 else 0
                    number += 1
                    data[offset:offset + 8] = where.to_bytes(8, "little")
            arguments.append(bytes(data))
        return grid, block, arguments


# ------------------------------------------------------------------------------------------------------------ comparison

def _key(name):
    value = 0xcbf29ce484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


class Comparison:
    """One launch's footprint and what it did."""

    def __init__(self, module, function, library, done, segments, pointers):
        self.pointers = pointers
        self.module, self.function, self.library, self.done = module, function, library, done
        self.anything = any(s.extent == _ALL for s in segments)
        self.tokens = {s.base: s.access for s in segments if s.extent == _TOKEN}
        self.escapes = {s.base for s in segments if s.access == library.escape}
        self.of = collections.defaultdict(list)
        for s in segments:
            if s.extent == 0 and s.access != library.escape:
                self.of[interpreter.owner(s.base)].append(s)

    def _whole(self, segment):
        return segment.row_bytes == self.library.whole

    def _in(self, address, size, need):
        mine = [s for s in self.of.get(interpreter.owner(address), ()) if s.access & need]
        if any(self._whole(s) or s.holds(address, size) for s in mine):
            return True
        return size > 1 and all(any(s.holds(address + i, 1) for s in mine) for i in range(size))

    def missing(self):
        """(kind, pointer, offset, line) of each access that the footprint lacks."""
        if self.anything:
            return
        for kind, need, touched in (("read", _READ, self.done.reads), ("write", _WRITE, self.done.writes)):
            for (address, size), line in touched.items():
                if abs(address - interpreter.HIDDEN) < _FAR:
                    yield f"{kind} at an address from memory", -1, 0, line
                elif self.module.variable(address):
                    name = self.module.variable(address)
                    if self.function.spaces.get(name) != "const" and not name.startswith("__cudart_") and not self.tokens.get(_key(name), 0) & need:
                        yield f"{kind} of variable {name[-30:]}", -1, 0, line
                elif not self._in(address, size, need):
                    number = interpreter.owner(address)
                    yield kind, number, address - interpreter.pointer(number), line
        for address, line in self.done.kept.items():
            number = interpreter.owner(address)
            if number < self.pointers and interpreter.pointer(number) not in self.escapes:
                yield "store of the pointer", number, address - interpreter.pointer(number), line

    def exactness(self, number):
        """"exact", "hull", "more", "whole" or "" of one pointer."""
        spans = [[(a, a + s) for a, s in touched if interpreter.owner(a) == number] for touched in
                 (self.done.writes, [*self.done.reads, *self.done.writes])]
        mine = self.of.get(number, [])
        if self.anything or any(self._whole(s) for s in mine):
            return "whole"
        if not mine and not spans[1]:
            return ""
        ways = []
        for wanted, named in zip(spans, ([s for s in mine if s.access & _WRITE], mine)):
            if not wanted or not named:
                ways.append("exact" if not wanted and not named else "more")
                continue
            touched = {b for a, e in wanted for b in range(a, e)}
            hull = (min(s.base for s in named), max(s.last() for s in named)) == (min(touched), max(touched))
            total = sum(s.bytes() for s in named)
            if total < 1 << 20:
                total = len({s.base + r * s.pitch + b for s in named for r in range(s.rows) for b in range(s.row_bytes)})
            ways.append("exact" if total == len(touched) else "hull" if hull else "more")
        return max(ways, key=("exact", "hull", "more").index)


class Trial:
    """Launches of one kernel, and their results."""

    def __init__(self, module, function, library, options):
        self.module, self.function, self.library, self.options = module, function, library, options
        name = header.plain_name(function.name)
        self.number, self.text = library.numbers[name], library.texts[name]
        self.launches = Launches(module, function, self.text, f"{options.seed} {function.name}")
        self.counts, self.exact, self.whole, self.seen = [collections.Counter() for _ in range(4)]
        self.by_slot = collections.defaultdict(collections.Counter)
        self.skipped = ""

    def run(self):
        started = time.monotonic()
        for i in range(self.options.launches):
            if time.monotonic() - started > self.options.seconds:
                break
            grid, block, arguments = self.launches.next()
            try:
                done = Launch(self.module, self.function.name, grid, block, arguments, i, i % 4 == 3, self.options.budget)
                done.run()
            except (interpreter.Unsupported, SyntaxError) as reason:
                self.skipped = str(reason)
                return
            if self._wild(done):
                done.failure = "wild"
            self.counts[done.failure or "complete"] += 1
            if done.failure in ("", "too long", "trap"):
                self._compare(done, grid, block, arguments)
                self._compare(done, grid, block, arguments, True)

    def _wild(self, done):
        """Whether an address is so far from every pointer that it may belong to another one: no program does that."""
        for address, _ in (*done.reads, *done.writes):
            number = interpreter.owner(address)
            if not (number < len(self.launches.pointers) and abs(address - interpreter.pointer(number)) <= _FAR) \
                    and not self.module.variable(address) and abs(address - interpreter.HIDDEN) > _FAR:
                return True
        return False

    @staticmethod
    def _hulls(done):
        ends = {}
        for address, size in (*done.reads, *done.writes):
            first, end = ends.get(interpreter.owner(address), (address, 0))
            ends[interpreter.owner(address)] = min(first, address), max(end, address + size)
        return [(interpreter.pointer(n), first, end - first) for n, (first, end) in ends.items() if n < 4096]

    def _compare(self, done, grid, block, arguments, known=False):
        segments = self.library.segments(self.number, grid, block, arguments, self._hulls(done) if known else ())
        comparison = Comparison(self.module, self.function, self.library, done, segments, len(self.launches.pointers))
        addresses = [int.from_bytes(arguments[a][o:o + 8], "little") for a, o in self.launches.pointers]
        for kind, number, offset, line in comparison.missing():
            self.seen[kind, number, line] += 1
            if self.seen[kind, number, line] == 1 and len(self.seen) <= self.options.violations:
                self._report(kind, number, offset, line, grid, block, arguments, segments)
        if done.failure or known:
            return
        for number, address in enumerate(addresses if self.launches.pointers == self.launches.known else ()):
            if address:
                how = comparison.exactness(number)
                self.exact[how] += how != ""
                self.by_slot[number][how] += how != ""
                if how == "whole":
                    self.whole[self._why(number)] += 1

    def _why(self, number):
        found = re.findall(rf"acs_scan_whole\(&p\[{self._place(number)}\]\.\w+\); /\* line \d+: (.*?) \*/", self.text)
        found += re.findall(r"acs_scan_anything\(out, capacity, at\); /\* line \d+: (.*?) \*/", self.text)
        return found[0] if found else "this launch does not meet a demand, or an offset is unlimited"

    def _place(self, number):
        slot = self.launches.pointers[number]
        found = re.search(rf"p\[(\d+)\]\.address = acs_scan_address\(in, {slot[0]}, {slot[1]}\)", self.text)
        return found.group(1) if found else "none"

    def _report(self, kind, number, offset, line, grid, block, arguments, segments):
        slot = self.launches.pointers[number] if 0 <= number < len(self.launches.pointers) else "none"
        print(f"MISSING {kind} in ...{self.function.name[-50:]}\n  line {line}, argument and offset {slot}, byte {offset}; "
              f"grid {grid}, block {block}")
        values = []
        for i, data in enumerate(arguments):
            parts = []
            for k in range(0, len(data), 8 if len(data) % 8 == 0 else len(data)):
                value = int.from_bytes(data[k:k + 8], "little")
                at = interpreter.owner(value) if value >= interpreter.HALF else -1
                parts.append(f"*{at}" if (i, k) in self.launches.pointers else
                             str(int.from_bytes(data[k:k + 8], "little", signed=len(data) in (2, 4, 8))))
            values.append("{" + " ".join(parts) + "}" if len(parts) > 1 else parts[0])
        print(f"  arguments {', '.join(values)[:600]}")
        for s in segments:
            if s.extent or interpreter.owner(s.base) == number:
                wide = "whole" if s.row_bytes == self.library.whole else s.row_bytes
                at = s.base - interpreter.pointer(interpreter.owner(s.base))
                print(f"  segment extent {s.extent} access {s.access} at {at}: "
                      f"{wide} x {s.rows}, pitch {s.pitch}")


# --------------------------------------------------------------------------------------------------------------- program

def _scan(function, functions, totals, seconds):
    """A kernel's footprint and its code; None where acs-scan fails, or takes too long."""
    thread = ctypes.c_ulong(threading.get_ident())
    timer = threading.Timer(seconds, ctypes.pythonapi.PyThreadState_SetAsyncExc, (thread, ctypes.py_object(TimeoutError)))
    timer.start()
    try:
        found = footprint.scan(function, functions)
        return found, header.code(found)
    except Exception as error:  # pylint: disable=broad-exception-caught
        totals.failed.append(f"...{function.name[-50:]}: {type(error).__name__} {error}")
        return None
    finally:
        timer.cancel()


def _file(path, folder, options, totals):
    with open(path, "rb") as source:
        data = source.read()
    if data[:4] == b"\x50\xed\x55\xba" or b".entry" not in data:
        return
    module = interpreter.Module(data.decode())
    kernels = [f for f in module.functions.values() if f.kernel]
    footprints = [_scan(f, module.functions, totals, options.patience) for f in kernels]
    kernels = [f for f, found in zip(kernels, footprints) if found]
    footprints = [found for found in footprints if found]
    library = Library(header.text(footprints, "kernels.h"), folder, options.include)
    for function in kernels:
        if options.only and options.only not in function.name:
            continue
        trial = Trial(module, function, library, options)
        trial.run()
        totals.add(path, trial)


class Totals:
    def __init__(self, verbose):
        self.verbose, self.kernels, self.skipped, self.violations = verbose, 0, [], 0
        self.counts, self.exact, self.whole = (collections.Counter() for _ in range(3))
        self.idle = []
        self.wrong, self.failed = [], []

    def add(self, path, trial):
        name = f"{os.path.basename(path)[:30]}: ...{trial.function.name[-50:]}"
        if trial.skipped:
            self.skipped.append(f"{name}: {trial.skipped}")
        self.kernels += 1
        self.counts += trial.counts
        self.exact += trial.exact
        self.whole += trial.whole
        self.violations += sum(trial.seen.values())
        if trial.seen:
            self.wrong.append(f"{name}: {len(trial.seen)} places")
        if not trial.counts["complete"] and not trial.skipped:
            self.idle.append(f"{name}: {dict(trial.counts)}")
        if self.verbose:
            print(f"{name}: {dict(trial.counts)} {dict(trial.exact)}"
                  + "".join(f"\n    {trial.launches.pointers[n]} {dict(c)}" for n, c in sorted(trial.by_slot.items()))
                  + "".join(f"\n    whole: {c} x {why}" for why, c in trial.whole.most_common(2)), flush=True)

    def show(self):
        print(f"\n{self.kernels} kernels, {len(self.skipped)} skipped; launches {dict(self.counts)}")
        for title, lines in (("acs-scan failed", self.failed), ("skipped", self.skipped),
                             ("never ran to the end", self.idle),
                             ("missing bytes", self.wrong)):
            if lines:
                print(f"{title}:\n  " + "\n  ".join(lines))
        print(f"pointers of launches by how exact they are: {dict(self.exact)}")
        for why, count in self.whole.most_common(12):
            print(f"  whole, {count} x: {why}")
        print(f"accesses missing: {self.violations}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help="PTX")
    parser.add_argument("--launches", type=int, default=30, help="of each kernel")
    parser.add_argument("--seconds", type=float, default=6, help="most for one kernel")
    parser.add_argument("--patience", type=float, default=15, help="seconds that acs-scan may take for a kernel")
    parser.add_argument("--budget", type=int, default=300000, help="most instructions of a launch")
    parser.add_argument("--violations", type=int, default=3, help="most reports for one kernel")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="", help="kernels whose names contain this")
    parser.add_argument("--include", action="append", default=[], help="folder with the acs.h to compile with")
    parser.add_argument("--verbose", action="store_true")
    options, totals = parser.parse_args(), None
    totals = Totals(options.verbose)
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            _file(path, folder, options, totals)
    totals.show()
    sys.stdout.flush()
    os._exit(1 if totals.violations else 0)


if __name__ == "__main__":
    sys.setrecursionlimit(1000000)
    threading.stack_size(512 << 20)
    worker = threading.Thread(target=main)
    worker.start()
    worker.join()
