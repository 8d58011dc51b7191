"""
Compares what acs.warp._inference finds with two things that do not share its code: the C++ that Warp generates for each kernel,
and the memory before and after each launch of small scenes, on Warp's CPU device.

    ACS_LIBRARY=... python check_warp_inference.py [--scenes mujoco,newton] [--no-run] [--list]

Needs warp, mujoco_warp and newton. Exits with 1 if anything that a kernel does was not found.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import importlib
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from warp._src import context as warp_context
from warp._src import types as warp_types

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from acs._arrays import READ, UPDATE  # noqa: E402
from acs.warp import _inference as inference  # noqa: E402
from acs.warp import _ranges as ranges  # noqa: E402

SKIPPED_MODULES = ("test", "examples", "viewer", "usd", "__main__", "record")


# The generated code

_FUNCTION = re.compile(r"^static (?:CUDA_CALLABLE )?(?:__\w+__ )?(?P<result>[^\n(]+?) (?P<name>\w+)\(\n"
                       r"(?P<parameters>.*?)\)\n\{\n(?P<body>.*?)\}\n(?=\n)", re.S | re.M)
_DECLARED = re.compile(r"^\s*(?:const )?(?P<type>[\w:]+(?:<.*>)?\s?[*&]*) (?P<name>var_\w+)(?: = (?P<value>[^;]*))?;$")
_VARIABLE = re.compile(r"\(*\bvar_\w+\)*(?:\.\w+\)*)*")
_CALL = re.compile(r"(?P<name>(?:wp::)?\w+)(?:<[^;()]*>)?\(")

# Calls that do not write through their arguments. Whatever else is called counts as writing all arrays that it is given.
_LOOKS = {"where", "select", "copy", "load", "tuple", "extract", "len", "unot"}
_READS = {"address", "view", "index", "tile_load", "tile_load_indexed", "lower_bound", "sample_cdf", "volume_sample_index",
          "volume_sample_grad_index", "indexref", "reshape"}


class Summary:
    """What a generated function does with its parameters."""

    def __init__(self) -> None:
        self.written: set[tuple[str, ...]] = set()
        self.touched: set[tuple[str, ...]] = set()
        self.returned: set[tuple[str, tuple[str, ...]]] = set()  # field of a struct, or "", and where it leads
        self.results: dict[str, set[tuple[str, tuple[str, ...]]]] = collections.defaultdict(set)  # the same, by reference


def split_arguments(text: str) -> list[str]:
    """The arguments of a call: ``text`` starts behind its bracket."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            if depth == 0:
                parts.append(text[start:place])
                return parts
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return parts


def holds_memory(kind: str, structs: set[str]) -> bool:
    """Whether a variable of this type of C++ can lead to the memory of an array."""
    if "tile_" in kind:
        return False
    return "array_t<" in kind or "*" in kind or kind.strip(" &") in structs or "tuple_t<" in kind


class Generated:
    """One generated module."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.structs = set(re.findall(r"^struct (\w+)\n\{", source, re.M))
        self.functions: dict[str, list[re.Match[str]]] = collections.defaultdict(list)
        for match in _FUNCTION.finditer(source):
            self.functions[match["name"]].append(match)
        self.summaries: dict[str, Summary] = {}

    def kernel(self, name: str) -> Summary:
        head = r"^static void " + re.escape(name) + r"_cpu_kernel_forward\(\n.*?\)\n\{\n"
        match = re.search(head + r"(?P<body>.*?)^\}\n", self.source, re.S | re.M)
        if match is None:
            raise KeyError(name)
        return self.look(match["body"], {})

    def function(self, name: str) -> Summary:
        if name not in self.summaries:
            whole = self.summaries[name] = Summary()
            for match in self.functions[name]:
                kinds = {}
                for parameter in self.split_parameters(match):
                    kind, _, label = parameter.rpartition(" ")
                    kinds[label] = kind
                if not all(label.startswith(("var_", "ret_")) for label in kinds):
                    found = Summary()  # native code
                    found.written = found.touched = {(label,) for label in kinds}
                    found.returned = {("", root) for root in found.written}
                else:
                    found = self.look(match["body"], kinds)
                whole.written |= found.written
                whole.touched |= found.touched
                whole.returned |= found.returned
                for label, result in found.results.items():
                    whole.results[label] |= result
        return self.summaries[name]

    def parameters(self, name: str) -> list[str]:
        return [each.rpartition(" ")[2] for each in self.split_parameters(self.functions[name][0])]

    @staticmethod
    def split_parameters(match: re.Match[str]) -> list[str]:
        """Type and name of each parameter: there is one on a line."""
        return [each.strip() for each in match["parameters"].split(",\n") if each.strip()]

    def look(self, body: str, parameters: dict[str, str]) -> Summary:
        return Look(self, body, parameters).summary


class Look:
    """
    The statements of one generated function. Roots are the names of parameters, or fields of them: ("var_s", "field").
    A variable leads to pairs of a field and a root; the field is "" for what is no local struct.
    """

    def __init__(self, module: Generated, body: str, parameters: dict[str, str]) -> None:
        self.module, self.summary = module, Summary()
        self.kinds: dict[str, str] = dict(parameters)
        self.leads: dict[str, set[tuple[str, tuple[str, ...]]]] = {label: {("", (label,))} for label in parameters}
        statements = []
        for line in body.splitlines():
            line = line.split("//")[0].rstrip()
            declared = _DECLARED.match(line)
            if declared and not line.strip().startswith("return "):
                self.kinds[declared["name"]] = declared["type"]
                if "_wp_args->" in (declared["value"] or ""):
                    self.leads[declared["name"]] = {("", (declared["name"],))}
                    continue
                if declared["value"] is None or declared["value"].endswith("{}"):
                    continue
                line = f"{declared['name']} = {declared['value']};"
            if line.strip():
                statements.append(line.strip())
        before = -1
        while before != (before := sum(map(len, self.leads.values()))):
            for statement in statements:
                self.statement(statement)

    def roots(self, text: str) -> set[tuple[str, ...]]:
        """All arrays to which the variables in a piece of code lead."""
        return {root for _, root in self.pairs(text)}

    def pairs(self, text: str) -> set[tuple[str, tuple[str, ...]]]:
        """The same, with the fields of local structs."""
        found: set[tuple[str, tuple[str, ...]]] = set()
        for match in _VARIABLE.finditer(text):
            name, *path = match[0].replace("(", "").replace(")", "").split(".")
            if path and path[0] in ("shape", "strides", "ndim", "size"):
                continue
            if not holds_memory(self.kinds.get(name, ""), self.module.structs):
                continue
            for field, root in self.leads.get(name, ()):
                if not field:
                    found.add(("", (*root, *path) if root == (name,) or "*" not in self.kinds[name] else root))
                elif not path:
                    found.add((field, root))
                elif path[0] == field:
                    found.add(("", root))
        return found

    def statement(self, text: str) -> None:
        if text.startswith("ret_"):
            self.summary.results[text.partition(" = ")[0]] |= self.expression(text.partition(" = ")[2])
            return
        target, equals, value = text.partition(" = ")
        if not equals or not re.fullmatch(r"\*?\(*var_\w+\)*(\.\w+\)*)*", target):
            target, value = "", text
        leads = self.expression(value)
        if text.startswith("return "):
            self.summary.returned |= self.pairs(text)
        if not target:
            return
        if target.startswith("*"):
            self.summary.written |= self.roots(target)
            self.summary.touched |= self.roots(target)
        name, *path = target.replace("(", "").replace(")", "").strip("*").split(".")
        if path:
            leads = {(path[0], root) for _, root in leads}
        if holds_memory(self.kinds.get(name, ""), self.module.structs):
            self.leads.setdefault(name, set()).update(leads)

    def expression(self, text: str) -> set[tuple[str, tuple[str, ...]]]:
        """Note what the calls in the text do. Returns the arrays to which its value may lead."""
        leads: set[tuple[str, tuple[str, ...]]] = set()
        called = False
        for match in _CALL.finditer(text):
            full, arguments = match["name"], split_arguments(text[match.end():])
            name = full.removeprefix("wp::")
            called = True
            if full in self.module.functions:
                leads |= self.user(full, arguments)
                continue
            pairs = set().union(*(self.pairs(argument) for argument in arguments))
            roots = {root for _, root in pairs}
            if name in _LOOKS:
                leads |= pairs  # what is loaded was touched when its address was taken
            elif name in _READS:
                leads |= pairs
                self.summary.touched |= roots
            elif full.startswith("wp::") or name in ("printf", "print"):
                self.summary.written |= roots
                self.summary.touched |= roots
            else:
                leads |= pairs  # a constructor of a struct, or a bracket after a keyword
        return leads if called else self.pairs(text)

    def user(self, name: str, arguments: list[str]) -> set[tuple[str, tuple[str, ...]]]:
        found = self.module.function(name)
        given = dict(zip(self.module.parameters(name), arguments))

        def meant(root: tuple[str, ...]) -> set[tuple[str, tuple[str, ...]]]:
            label, *path = root
            return self.pairs(".".join((given[label].strip(), *path))) if label in given else set()

        for root in found.written:
            self.summary.written |= {outer for _, outer in meant(root)}
        for root in found.touched:
            self.summary.touched |= {outer for _, outer in meant(root)}
        for label, result in found.results.items():
            variable = given[label].strip()
            if holds_memory(self.kinds.get(variable, ""), self.module.structs):
                leads = {(field or inner, outer) for field, root in result for inner, outer in meant(root)}
                self.leads.setdefault(variable, set()).update(leads)
        return {(field or inner, outer) for field, root in found.returned for inner, outer in meant(root)}


def generated(module: Any, target: str = "cpu") -> tuple[Generated, list[Any]]:
    """The code of a module of Warp, and the kernels in it."""
    options = module.resolve_options(wp.config, block_dim=256) | {"output_arch": None, "block_dim": 256}
    builder = warp_context.ModuleBuilder(module, options, target=target)
    return Generated(builder.codegen(target)), list(builder.kernels)


# Kernels

def import_all(package: Any) -> None:
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not any(word in module.name for word in SKIPPED_MODULES):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                print(f"skipped {module.name}: {error}")


def modules() -> list[Any]:
    return list(dict.fromkeys([*warp_context.user_modules.values(), *_unique_modules]))


_unique_modules: list[Any] = []
_make_module = warp_context.Module.__init__


def _noted_module(self: Any, *arguments: Any, **named: Any) -> None:
    _make_module(self, *arguments, **named)
    _unique_modules.append(self)


setattr(warp_context.Module, "__init__", _noted_module)


def leaves(kernel: Any) -> Iterator[tuple[int, tuple[str, ...], Any]]:
    """All arrays of a kernel's arguments: argument, path, type."""
    def walk(path: tuple[str, ...], kind: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        if warp_types.is_array(kind):
            yield path, kind
        elif hasattr(kind, "vars") and hasattr(kind, "ctype"):
            for name, variable in kind.vars.items():
                yield from walk((*path, name), variable.type)
    for i, argument in enumerate(kernel.adj.args):
        for path, kind in walk((), argument.type):
            yield i, path, kind


def offset_of(kernel: Any, argument: int, path: tuple[str, ...]) -> int:
    kind, offset = kernel.adj.args[argument].type, 0
    for name in path:
        offset += getattr(kind.ctype, name).offset
        kind = kind.vars[name].type
    return offset


class Report:
    """Counts and complaints."""

    def __init__(self, listing: bool) -> None:
        self.counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.wrong: list[str] = []
        self.listing = listing

    def complain(self, text: str) -> None:
        if text not in self.wrong:
            self.wrong.append(text)
            print("TOO SMALL:", text)


def package_of(kernel: Any) -> str:
    return str(kernel.func.__module__).split(".")[0]


def track_flags(module: Any) -> None:
    """Build a module so that Warp marks which arguments its kernels read and write."""
    options = module.resolve_options(wp.config, block_dim=256) | {
        "output_arch": None, "block_dim": 256, "verify_autograd_array_access": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warp_context.ModuleBuilder(module, options, target="cpu")


def compare_code(report: Report) -> None:
    """The first comparison, with the generated code."""
    for module in modules():
        if not module.kernels:
            continue
        try:
            code, kernels = generated(module)
        except Exception as error:  # a module that Warp itself cannot build here
            report.counts["modules that Warp cannot build here"][f"{module.name}: {type(error).__name__}"] += 1
            continue
        summaries = [code.kernel(kernel.get_mangled_name()) for kernel in kernels]
        for kernel, summary in zip(kernels, summaries):
            compare_kernel(report, kernel, summary)
        track_flags(module)
        for kernel, summary in zip(kernels, summaries):
            compare_flags(report, kernel, summary)


def matches(found: set[tuple[str, ...]], label: str, path: tuple[str, ...]) -> bool:
    """Whether the code was found to do something to an array, or to a struct around it."""
    whole = (label, *path)
    return any(root[:len(whole)] == whole[:len(root)] for root in found)


def compare_kernel(report: Report, kernel: Any, code: Summary) -> None:
    uses = inference.kernel_uses(kernel)
    found = {(use.argument, use.offset): use for use in uses.arrays}
    counts = report.counts[package_of(kernel)]
    counts["kernels"] += 1
    counts["kernels that read other memory"] += uses.everything == READ
    counts["kernels that may write other memory"] += uses.everything == UPDATE
    for argument, path, _ in leaves(kernel):
        label = "var_" + kernel.adj.args[argument].label
        use = found.get((argument, offset_of(kernel, argument, path)))
        written, touched = matches(code.written, label, path), matches(code.touched, label, path)
        counts["array arguments"] += 1
        counts["read-only" if use and not use.updates else "updated" if use else "not touched"] += 1
        counts["updated, though the code only reads"] += bool(use and use.updates and not written)
        counts["touched, though the code does not"] += bool(use and not touched)
        where = f"{kernel.module.name} {kernel.key}: {'.'.join((label[4:], *path))}"
        if report.listing and use and use.updates and not written:
            print("larger:", where)
        if uses.everything != UPDATE and ((written and not (use and use.updates)) or (touched and not use)):
            report.complain(where + (" is written" if written else " is read"))


def compare_flags(report: Report, kernel: Any, code: Summary) -> None:
    """What the code does, that inference finds, and Warp's own flags do not."""
    read_write = {i: (bool(argument.is_read), bool(argument.is_write)) for i, argument in enumerate(kernel.adj.args)}
    found = {use.argument: use for use in inference.kernel_uses(kernel).arrays if use.offset == 0}
    counts = report.counts[f"Warp's flags in {package_of(kernel)}"]
    for i, argument in enumerate(kernel.adj.args):
        if warp_types.is_array(argument.type):
            use = found.get(i)
            counts["array arguments"] += 1
            written, touched = (matches(each, "var_" + argument.label, ()) for each in (code.written, code.touched))
            is_read, is_write = read_write[i]
            counts["writes that they miss and inference finds"] += bool(written and use and use.updates and not is_write)
            counts["reads that they miss and inference finds"] += bool(
                touched and not written and use and not is_read and not is_write)
            counts["writes that they find and inference misses"] += bool(read_write[i][1] and not (use and use.updates))
            counts["reads that they find and inference misses"] += bool(read_write[i][0] and not use)


# Launches

class Watch:
    """Compares memory before and after each launch on the CPU."""

    def __init__(self, report: Report, most: int) -> None:
        self.report, self.most = report, most
        self.seen: collections.Counter[Any] = collections.Counter()
        self.plain, self.blocks = warp_context.invoke, warp_context.invoke_cpu_blocks

    def __enter__(self) -> Watch:
        warp_context.invoke = lambda *arguments: self.launch(self.plain, *arguments)
        warp_context.invoke_cpu_blocks = lambda *arguments: self.launch(self.blocks, *arguments)
        return self

    def __exit__(self, *_: Any) -> None:
        warp_context.invoke, warp_context.invoke_cpu_blocks = self.plain, self.blocks

    def launch(self, invoke: Any, kernel: Any, hooks: Any, parameters: Any, adjoint: bool) -> None:
        self.seen[kernel] += 1
        if self.seen[kernel] > self.most or adjoint:
            invoke(kernel, hooks, parameters, adjoint)
            return
        uses = inference.kernel_uses(kernel)
        addresses = [ctypes.addressof(parameter) for parameter in parameters[1:]]
        touched = ranges.touched(uses, addresses)
        every = self.ranges(kernel, addresses)
        before = {place: ctypes.string_at(*place) for place in every}
        invoke(kernel, hooks, parameters, adjoint)
        counts = self.report.counts["launches"]
        counts["compared"] += 1
        counts["of kernels that may write other memory"] += uses.everything == UPDATE
        if uses.everything == UPDATE:
            return
        updated = [(first, nbytes) for first, nbytes, access in touched if access == UPDATE]
        for place, argument in every.items():
            self.compare(kernel, argument, place, before[place], updated)
        untouched = self.apart(every, [(first, nbytes) for first, nbytes, _ in touched])
        if untouched and not uses.everything:
            self.poison(invoke, (kernel, hooks, parameters, adjoint), before, updated, untouched)

    def ranges(self, kernel: Any, addresses: list[int]) -> dict[tuple[int, int], str]:
        """The memory of all arrays of a launch, by the descriptors alone."""
        found = {}
        for argument, path, kind in leaves(kernel):
            at = warp_types.array_t.from_address(addresses[argument] + offset_of(kernel, argument, path))
            shape, strides = list(at.shape)[:at.ndim], list(at.strides)[:at.ndim]
            if at.data and all(size > 0 for size in shape):
                reaches = [stride * (size - 1) for size, stride in zip(shape, strides)]
                first = at.data + sum(reach for reach in reaches if reach < 0)
                nbytes = sum(abs(reach) for reach in reaches) + warp_types.type_size_in_bytes(kind.dtype)
                found[first, nbytes] = ".".join((kernel.adj.args[argument].label, *path))
        return found

    def compare(self, kernel: Any, argument: str, place: tuple[int, int], before: bytes,
                updated: list[tuple[int, int]]) -> None:
        """Bytes that changed must lie in an array that is updated."""
        self.report.counts["launches"]["arrays compared"] += 1
        after = ctypes.string_at(*place)
        if after == before:
            return
        changed = np.flatnonzero(np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)) + place[0]
        for first, nbytes in updated:
            changed = changed[(changed < first) | (changed >= first + nbytes)]
        self.report.counts["launches"]["arrays that changed"] += 1
        if changed.size:
            self.report.complain(f"{kernel.module.name} {kernel.key}: {argument} changed in a launch")

    @staticmethod
    def apart(every: dict[tuple[int, int], str], touched: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(first, nbytes) for first, nbytes in every
                if all(first + nbytes <= other or other + size <= first for other, size in touched)]

    def poison(self, invoke: Any, arguments: tuple[Any, ...], before: dict[tuple[int, int], bytes],
               updated: list[tuple[int, int]], untouched: list[tuple[int, int]]) -> None:
        """The launch once more, with other bytes in the arrays that it does not touch: its results are the same."""
        results = {place: ctypes.string_at(*place) for place in updated}
        for place, content in before.items():
            ctypes.memmove(place[0], content, place[1])
        for first, nbytes in untouched:
            ctypes.memset(first, 0x7F, nbytes)
        invoke(*arguments)
        kernel = arguments[0]
        self.report.counts["launches"]["repeated with poison"] += 1
        if any(ctypes.string_at(*place) != result for place, result in results.items()):
            self.report.complain(f"{kernel.module.name} {kernel.key}: reads an array that should not be touched")
        if any(ctypes.string_at(first, nbytes) != b"\x7f" * nbytes for first, nbytes in untouched):
            self.report.complain(f"{kernel.module.name} {kernel.key}: writes an array that should not be touched")
        for place in untouched:
            ctypes.memmove(place[0], before[place], place[1])


# Scenes

def mujoco_scenes(steps: int) -> Iterator[tuple[str, Any]]:
    import mujoco
    import mujoco_warp

    data = Path(mujoco_warp.__file__).parent / "test_data"

    def stepped(path: Path) -> Any:
        def run() -> None:
            model = mujoco.MjModel.from_xml_path(str(path))
            state = mujoco.MjData(model)
            if model.nkey:
                mujoco.mj_resetDataKeyframe(model, state, 0)
            mujoco.mj_forward(model, state)
            on_device = mujoco_warp.put_model(model)
            data_on_device = mujoco_warp.put_data(model, state, nworld=2, nconmax=256, njmax=512)
            for _ in range(steps):
                mujoco_warp.step(on_device, data_on_device)
        return run

    for name in ("humanoid/humanoid.xml", "pendula.xml", "constraints.xml", "primitives.xml", "collision.xml", "ray.xml"):
        yield name, stepped(data / name)
    for folder in ("tendon", "actuation", "flex", "hfield", "convex_collision"):
        for path in sorted((data / folder).glob("*.xml"))[:2]:
            yield f"{folder}/{path.name}", stepped(path)


def newton_scenes(steps: int) -> Iterator[tuple[str, Any]]:
    import newton

    def scene(solver: str, fill: Any, **options: Any) -> Any:
        def run() -> None:
            builder = newton.ModelBuilder()
            fill(builder)
            builder.add_ground_plane()
            if solver == "SolverVBD":
                builder.color()
            model = builder.finalize(device="cpu")
            stepper = getattr(newton.solvers, solver)(model, **options)
            states, control = [model.state(), model.state()], model.control()
            positions: Any = model.joint_q
            velocities: Any = model.joint_qd
            newton.eval_fk(model, positions, velocities, states[0])
            for _ in range(steps):
                states[0].clear_forces()
                contacts = model.contacts()
                model.collide(states[0], contacts)
                stepper.step(states[0], states[1], control, contacts, 1e-3)
                states.reverse()
        return run

    def bodies(builder: Any) -> None:
        previous = -1
        joints = []
        for i in range(3):
            link = builder.add_link(xform=wp.transform((0.0, 0.0, 1.0 + i), wp.quat_identity()))
            builder.add_shape_box(link, hx=0.1, hy=0.1, hz=0.2)
            joints.append(builder.add_joint_revolute(previous, link, axis=(0.0, 1.0, 0.0)))
            previous = link
        builder.add_articulation(joints)
        for i in range(3):
            body = builder.add_body(xform=wp.transform((1.0 + i, 0.0, 0.19), wp.quat_identity()))
            (builder.add_shape_sphere, builder.add_shape_capsule, builder.add_shape_box)[i](body)

    def cloth(builder: Any) -> None:
        builder.add_cloth_grid(pos=wp.vec3(0.0, 0.0, 0.02), rot=wp.quat_identity(), vel=wp.vec3(0.0, 0.0, -1.0),
                               dim_x=4, dim_y=4, cell_x=0.1, cell_y=0.1, mass=0.1)

    def soft(builder: Any) -> None:
        builder.add_soft_grid(pos=wp.vec3(0.0, 0.0, 0.02), rot=wp.quat_identity(), vel=wp.vec3(0.0, 0.0, -1.0),
                              dim_x=2, dim_y=2, dim_z=2, cell_x=0.1, cell_y=0.1, cell_z=0.1, density=100.0, k_mu=1e3,
                              k_lambda=1e3, k_damp=1.0)

    yield "xpbd bodies", scene("SolverXPBD", bodies)
    yield "semi-implicit bodies", scene("SolverSemiImplicit", bodies)
    yield "featherstone bodies", scene("SolverFeatherstone", bodies)
    yield "mujoco bodies", scene("SolverMuJoCo", bodies)
    yield "xpbd cloth", scene("SolverXPBD", cloth)
    yield "xpbd soft", scene("SolverXPBD", soft)
    yield "semi-implicit soft", scene("SolverSemiImplicit", soft)
    yield "vbd cloth", scene("SolverVBD", cloth)
    yield "vbd soft", scene("SolverVBD", soft)


def run_scenes(report: Report, names: set[str], steps: int, most: int) -> None:
    scenes: list[tuple[str, Any]] = []
    if "mujoco" in names:
        scenes += mujoco_scenes(steps)
    if "newton" in names:
        scenes += newton_scenes(steps)
    with Watch(report, most) as watch, wp.ScopedDevice("cpu"):
        for name, run in scenes:
            try:
                run()
                print("ran", name, flush=True)
                report.counts["launches"]["scenes"] += 1
            except Exception as error:
                print(f"could not run {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
                if report.listing:
                    traceback.print_exc()
        report.counts["launches"]["kernels launched"] = len(watch.seen)
        report.counts["launches"]["launches"] = sum(watch.seen.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default="mujoco,newton")
    parser.add_argument("--no-run", action="store_true", help="compare with the generated code only")
    parser.add_argument("--list", action="store_true", help="name the arrays that count as updated though the code only reads")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--most", type=int, default=20, help="launches of a kernel that are compared")
    options = parser.parse_args()
    setattr(wp.config, "quiet", True)
    import mujoco_warp
    import newton
    import_all(mujoco_warp)
    import_all(newton)
    report = Report(options.list)
    if not options.no_run:
        run_scenes(report, set(options.scenes.split(",")), options.steps, options.most)
    compare_code(report)
    for part, counts in report.counts.items():
        print(f"{part}:")
        for name, count in counts.items():
            print(f"    {count:7} {name}")
    print(f"too small: {len(report.wrong)}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
