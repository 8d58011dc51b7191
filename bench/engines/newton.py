"""Newton's own examples as they are, and with their frames through ACS. See README.md."""
from __future__ import annotations

import argparse
import functools
import gc
import importlib
import math
import pathlib
import sys
import time
from typing import Any

# This file is called as the engine is: the folder above stands in for this one, so that the import below finds the engine.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import newton.examples  # noqa: E402
import newton.viewer  # noqa: E402
import warp as wp  # noqa: E402

from engines import measure, on_warp  # noqa: E402

# Examples that need no network and no further package, with the options that they get. The first ones are the default.
EXAMPLES: dict[str, list[str]] = {
    "mujoco_vbd_admm_solver": [],
    "mujoco_xpbd_coupled_solver": [],
    "cloth_hanging": [],
    "basic_pendulum": [],
    "basic_joints": [],
    "basic_urdf": [],
    "softbody_hanging": [],
    "cable_twist": [],
    "cable_pile": [],
}
# Examples that need usd-core.
MORE: dict[str, list[str]] = {
    "basic_shapes": [],
    "kamino_basic_fourbar": ["--no-from-usd"],
    "kamino_basic_heterogeneous": ["--no-from-usd"],
    "mpm_granular": ["--grid-type", "fixed", "--substeps", "2"],
}
OUTPUTS = ("body_q", "body_qd", "particle_q", "particle_qd", "joint_q", "joint_qd")
MODES = ("eager", "graph", "graph_again", "acs")  # graph_again is the control: its ratio to graph is noise
ENGINE, ACS = ("graph",), ("acs",)


def construct(name: str) -> Any:
    """An example in its first frame. It captures its frame as a graph by itself, where it can."""
    example = importlib.import_module(newton.examples.get_examples()[name]).Example
    make_parser = getattr(example, "create_parser", newton.examples.create_parser)
    options = make_parser().parse_args(["--viewer", "null", *{**EXAMPLES, **MORE}.get(name, [])])
    return example(newton.viewer.ViewerNull(num_frames=1 << 30), options)


def state_of(example: Any) -> measure.State:
    state = example.state_0
    return {name: getattr(state, name).numpy() for name in OUTPUTS if getattr(state, name, None) is not None}


def build(name: str, mode: str, options: argparse.Namespace, frames: int = 1) -> measure.Subject:
    """One mode, ready to be stepped, a frame at a time."""
    through_acs, eager = mode.startswith("acs"), mode.endswith("eager")
    facts: dict[str, Any] = {}
    begin = time.perf_counter()
    with on_warp.acs_hooks(through_acs and not eager), on_warp.launches_counted() as count:
        example = construct(name)
        if through_acs and not eager:
            facts["report"] = on_warp.acs_report()
    facts |= {"construct_s": time.perf_counter() - begin, "kernels": count["captured"]}
    if eager:
        example.graph = None
    elif getattr(example, "graph", None) is None:
        raise RuntimeError("the example has no graph")
    return on_warp.subject(mode, example.step, lambda: state_of(example), through_acs,
                           steps=options.eager_steps if eager else frames, facts=facts)


def run_row(name: str, options: argparse.Namespace, budget: measure.Budget) -> measure.Row:
    row: measure.Row = {"name": name, "scene": name, "modes": {}}
    begin = time.perf_counter()
    try:
        construct(name).step()  # compiles; a frame in which much else is made for the first time
        row["compile_s"] = time.perf_counter() - begin
        budget.say(f"{name}: compiled and loaded in {row['compile_s']:.1f} s")
        subject = build(name, "graph", options)
        plain = [subject.state_after(options.compare)]
        begin = time.perf_counter()
        subject.run(options.compare)
        row["frames"] = max(1, math.ceil(options.batch_ms * options.compare / ((time.perf_counter() - begin) * 1e3)))
        plain += [build(name, "graph", options).state_after(options.compare) for _ in range(measure.PLAIN_RUNS - 1)]
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
        return row
    chosen = [mode for mode in MODES if not options.modes or mode in options.modes]
    builders = {mode: functools.partial(build, name, mode, options, row["frames"]) for mode in chosen}
    measure.fill(row, builders, plain, options, budget)
    row["kernels"] = row["modes"].get("graph", {}).get("kernels", "")
    measure.add_gains(row, ENGINE, (), ACS)
    gc.collect()
    return row


def main() -> None:
    options = on_warp.parser(__doc__)
    options.add_argument("--scenes", type=measure.words, default=list(EXAMPLES), help="only these examples, a,b,c")
    options.add_argument("--batch-ms", type=float, default=60, help="length of a batch, by which its frames are chosen")
    options.add_argument("--compare", type=int, default=10, help="frames after which states are compared")
    given = options.parse_args()
    if given.device:
        wp.set_device(given.device)
    budget = measure.Budget(given.budget)
    report = measure.Report(given.json, list(MODES), vars(given), on_warp.device(), len(given.scenes))
    with report:
        for name in given.scenes:
            if not budget.is_spent():
                report.add(run_row(name, given, budget))
    report.close()


if __name__ == "__main__":
    main()
