"""MuJoCo Warp as it is, and with its steps through ACS. See README.md."""
from __future__ import annotations

import argparse
import functools
import os
import pathlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

# This file is called as the engine is: the folder above stands in for this one, so that the import below finds the engine.
HERE = pathlib.Path(__file__).resolve().parent
sys.path[0] = str(HERE.parent)

import mujoco  # noqa: E402
import mujoco_warp as mjw  # noqa: E402
import numpy as np  # noqa: E402
import warp as wp  # noqa: E402

from engines import measure, on_warp  # noqa: E402

HUMANOID = pathlib.Path(mjw.__file__).parent / "test_data" / "humanoid" / "humanoid.xml"
SMALL = ("ant", "hopper", "walker", "cheetah", "cartpole", "arm", "boxes")
WORLDS = {"humanoid": [1, 16, 256, 1024, 4096], "three": [1, 256], "fleet": [1, 64]}
CONTACTS, ROWS, MORE_ROWS = 48, 64, 96  # room per world and floating body: the engine's default, and more for small models
INPUTS = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "time")  # from these a step computes all else
OUTPUTS = ("qpos", "qvel", "time", "qacc", "xpos", "xquat", "qfrc_constraint", "solver_niter", "nefc")


@dataclass(frozen=True)
class Mode:
    """How a program's steps are issued."""

    issue: str  # eager, graph, streams (a stream for each environment, in one graph), graphs (a graph for each, on its stream)
    flat: bool = False  # loops unrolled, not conditional
    through_acs: bool = False


MODES = {
    "eager": Mode("eager"),
    "acs_eager": Mode("eager", through_acs=True),
    "eager_flat": Mode("eager", flat=True),
    "acs_eager_flat": Mode("eager", flat=True, through_acs=True),
    "graph": Mode("graph"),
    "graph_again": Mode("graph"),  # the control: nothing differs from `graph`, so their ratio is noise
    "flat": Mode("graph", flat=True),
    "hand": Mode("streams", flat=True),
    "hand_graphs": Mode("graphs"),
    "acs": Mode("graph", through_acs=True),
    "acs_flat": Mode("graph", flat=True, through_acs=True),
}
ON_REQUEST = ("eager_flat", "acs_eager_flat")  # only with --modes
EAGER_STEPS_BEFORE = 30  # of each batch through ACS: parts that recur are found, and their graphs built
ENGINE, HAND, ACS = ("graph", "flat"), ("hand", "hand_graphs"), ("acs", "acs_flat")


class Environment:
    """A model on the device, and where its worlds begin."""

    def __init__(self, model: mujoco.MjModel, worlds: int, seed: int) -> None:
        self.host, self.worlds = model, worlds
        floating = max(int((model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).sum()), 1)
        self.contacts, self.rows = CONTACTS * floating, (ROWS if model.nu == 21 * floating else MORE_ROWS) * floating
        self.start = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, self.start, 0)
        mujoco.mj_forward(model, self.start)
        random = np.random.default_rng(seed)
        self.ctrl = random.uniform(-0.5, 0.5, (worlds, model.nu)).astype(np.float32)
        self.qvel = random.uniform(-0.1, 0.1, (worlds, model.nv)).astype(np.float32)
        self.model = mjw.put_model(model)
        self.model.opt.warn_overflow = 0  # what kernels print would be timed; `Program.room` looks instead

    def data(self) -> mjw.Data:
        """The worlds at their start; the same for each call."""
        data = mjw.put_data(self.host, self.start, self.worlds, nconmax=self.contacts, njmax=self.rows)
        data.qvel.assign(self.qvel)
        if self.host.nu:
            data.ctrl.assign(self.ctrl)
        return data


def humanoids(count: int) -> mujoco.MjModel:
    """So many humanoids on one floor, squatting."""
    spec = mujoco.MjSpec.from_file(str(HUMANOID))
    squat = np.array(spec.keys[0].qpos)
    for key in list(spec.keys):
        spec.delete(key)
    for index in range(1, count):
        other = mujoco.MjSpec.from_file(str(HUMANOID))
        for key in list(other.keys):
            other.delete(key)
        spec.worldbody.add_frame(pos=[0, 2 * index, 0]).attach_body(other.body("torso"), f"humanoid{index}_", "")
    qpos = np.tile(squat, count)
    qpos[1::squat.size] = 2 * np.arange(count)
    spec.add_key(name="squat", qpos=qpos)
    return spec.compile()


def environments(scene: str, worlds: int) -> list[Environment]:
    if scene == "humanoid":
        models = [humanoids(1)]
    elif scene == "three":
        models = [humanoids(3)]
    else:
        models = [humanoids(1), *(mujoco.MjModel.from_xml_path(str(HERE / "models" / f"{name}.xml")) for name in SMALL)]
    return [Environment(model, worlds, seed) for seed, model in enumerate(models)]


class Program:
    """Fresh data of all environments of a scene, and their step in one mode."""

    def __init__(self, scene: list[Environment], mode: Mode) -> None:
        self.scene, self.mode = scene, mode
        self.datas = [environment.data() for environment in scene]
        self.starts = [{name: wp.clone(getattr(data, name)) for name in INPUTS} for data in self.datas]
        self.streams: list[wp.Stream] = []
        self.graphs: list[wp.Graph] = []
        self.step: Callable[[], None] = self.step_all

    def step_of(self, index: int) -> None:
        model = self.scene[index].model
        model.opt.graph_conditional = not self.mode.flat
        mjw.step(model, self.datas[index])

    def step_all(self) -> None:
        for index in range(len(self.datas)):
            self.step_of(index)

    def step_out_of_order(self) -> None:
        import acs.warp  # only this mode needs it

        with acs.warp.out_of_order():
            self.step_all()

    def on_streams(self, step: Callable[[int], None]) -> None:
        """Forks from the current stream to one for each environment, and joins them."""
        fork = wp.get_stream().record_event()
        for index, stream in enumerate(self.streams):
            stream.wait_event(fork)
            with wp.ScopedStream(stream, sync_enter=False):
                step(index)
        for stream in self.streams:
            wp.wait_stream(stream)

    def captured(self, step: Callable[[], None], stream: wp.Stream | None = None) -> wp.Graph:
        with wp.ScopedStream(stream), wp.ScopedCapture() as capture:
            step()
        self.graphs.append(capture.graph)
        return capture.graph

    def prepare(self) -> None:
        """Captures what the mode launches. All kernels have been loaded."""
        if self.mode.issue == "eager" and self.mode.through_acs:
            self.step = self.step_out_of_order
        if self.mode.issue in ("streams", "graphs"):
            self.streams = [wp.Stream() for _ in self.datas]
        if self.mode.issue == "graph":
            graph = self.captured(self.step_all)
            self.step = lambda: wp.capture_launch(graph)
        elif self.mode.issue == "streams":
            graph = self.captured(lambda: self.on_streams(self.step_of))
            self.step = lambda: wp.capture_launch(graph)
        elif self.mode.issue == "graphs":
            graphs = [self.captured(functools.partial(self.step_of, index), stream)
                      for index, stream in enumerate(self.streams)]
            self.step = lambda: self.on_streams(lambda index: wp.capture_launch(graphs[index]))

    def reset(self) -> None:
        for data, start in zip(self.datas, self.starts):
            for name, array in start.items():
                wp.copy(getattr(data, name), array)

    def state(self) -> measure.State:
        return {f"{index}.{name}": getattr(data, name).numpy()
                for index, data in enumerate(self.datas) for name in OUTPUTS}

    def room(self) -> str | None:
        """Which arrays were too small, so that the engine dropped contacts or constraints."""
        short = [f"environment {index}" for index, data in enumerate(self.datas)
                 if data.nefc.numpy().max(initial=0) >= data.njmax or data.nacon.numpy()[0] >= data.naconmax]
        return f"too many contacts: {', '.join(short)}" if short else None


def compile_ahead(scene: list[Environment], workers: int) -> int:
    """Loads all kernels of a scene with one iteration of each loop, then steps once in earnest for those that are left."""
    program = Program(scene, Mode("eager", flat=True))
    kept = [environment.model.opt.iterations for environment in scene]
    for environment in scene:
        environment.model.opt.iterations = 1
    modules = on_warp.load_modules(program.step_all, workers)
    for environment, iterations in zip(scene, kept):
        environment.model.opt.iterations = iterations
    program.step_all()
    wp.synchronize_device()
    return modules


def build(scene: list[Environment], name: str, options: argparse.Namespace) -> measure.Subject:
    """One mode, ready to be stepped."""
    mode = MODES[name]
    program = Program(scene, mode)
    begin = time.perf_counter()
    facts: dict[str, object] = {}
    with on_warp.acs_hooks(mode.through_acs), on_warp.launches_counted() as count:
        program.prepare()
        if mode.through_acs and mode.issue == "graph":
            facts["report"] = on_warp.acs_report()
    facts |= {"capture_s": time.perf_counter() - begin, "kernels": count["all"]}
    eager = mode.issue == "eager"
    return on_warp.subject(name, lambda: program.step(), program.state, mode.through_acs, reset=program.reset,
                           steps=options.eager_steps if eager else options.steps,
                           steps_before=EAGER_STEPS_BEFORE if eager and mode.through_acs else 0, facts=facts,
                           complaint=program.room)


def chosen(scene: str, options: argparse.Namespace) -> list[str]:
    """The modes of a scene, the engine's own graph first, since the others are compared with it."""
    names = [name for name in MODES if (name in options.modes if options.modes else name not in ON_REQUEST)]
    if scene != "fleet":
        names = [name for name in names if name not in HAND]
    if not wp.get_device().is_cuda:
        names = [name for name in names if MODES[name].issue == "graph" or MODES[name] in (Mode("eager"), Mode("eager", flat=True))]
    return names


def plain_states(scene: list[Environment], options: argparse.Namespace) -> list[measure.State]:
    """States after the same steps by the engine's own graph, of several runs."""
    plain = build(scene, "graph", options)
    return [plain.state_after(options.compare) for _ in range(measure.PLAIN_RUNS)]


def run_row(scene: str, worlds: int, options: argparse.Namespace, budget: measure.Budget) -> measure.Row:
    row: measure.Row = {"name": f"{scene}, {worlds}", "scene": scene, "worlds": worlds, "modes": {}}
    begin = time.perf_counter()
    places = environments(scene, worlds)
    row["modules"] = compile_ahead(places, options.compile_workers)
    row["compile_s"] = time.perf_counter() - begin
    budget.say(f"{row['name']}: {row['modules']} modules loaded in {row['compile_s']:.1f} s")
    states = plain_states(places, options)
    builders = {name: functools.partial(build, places, name, options) for name in chosen(scene, options)}
    measure.fill(row, builders, states, options, budget)
    counts = [found["kernels"] for found in row["modes"].values() if found.get("kernels")]
    row["kernels"] = row["modes"].get("graph", {}).get("kernels") or min(counts, default="")
    measure.add_gains(row, ENGINE, HAND, ACS)
    return row


def main() -> None:
    options = on_warp.parser(__doc__)
    options.add_argument("--compile-workers", type=int, default=os.cpu_count(), help="threads that compile; 0: one by one")
    options.add_argument("--scenes", type=measure.words, default=list(WORLDS), help="only these, a,b,c")
    options.add_argument("--worlds", type=measure.numbers, help="these instead of each scene's own, 1,16")
    options.add_argument("--steps", type=int, default=50, help="steps per batch, by graphs")
    options.add_argument("--compare", type=int, default=20, help="steps after which states are compared")
    given = options.parse_args()
    if given.device:
        wp.set_device(given.device)
    budget = measure.Budget(given.budget)
    rows = [(scene, worlds) for scene in given.scenes for worlds in given.worlds or WORLDS[scene]]
    report = measure.Report(given.json, list(MODES), vars(given), on_warp.device(), len(rows))
    with report:
        for scene, worlds in rows:
            if not budget.is_spent():
                report.add(run_row(scene, worlds, given, budget))
    report.close()


if __name__ == "__main__":
    main()
