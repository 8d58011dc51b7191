"""Networks and training steps in plain PyTorch: eager, as PyTorch's graph, and as a graph of acs.torch. See README.md."""
from __future__ import annotations

import functools
import gc
import pathlib
import sys
import time
from typing import Any

# The folder above stands in for this one, so that `engines` is found, and no module here hides one of PyTorch.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import torch  # noqa: E402

from engines import measure, networks  # noqa: E402

MODES = ("eager", "graph", "graph_again", "compiled", "acs")  # graph_again is the control: its ratio to graph is noise
ENGINE, ACS = ("graph", "compiled"), ("acs",)
ON_REQUEST = ("compiled",)  # takes minutes
WARM_UP_CALLS = 3


def tensors_of(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def state_of(result: Any) -> measure.State:
    return {str(place): tensor.detach().float().cpu().numpy() for place, tensor in enumerate(tensors_of(result))}


def warmed_up(program: networks.Program) -> networks.Program:
    """Libraries make their plans before a capture, in a stream of its own as PyTorch asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_CALLS):
            program()
    torch.cuda.current_stream().wait_stream(stream)
    return program


def build(name: str, mode: str, options: Any) -> measure.Subject:
    """One mode of a program that begins as all others of it do."""
    torch.manual_seed(1)
    program = networks.PROGRAMS[name]()
    facts: dict[str, Any] = {}
    step = program
    kept: dict[str, Any] = {"program": program}  # a graph does not keep the memory that it reads
    begin = time.perf_counter()
    if mode == "compiled":
        step = torch.compile(program, mode="reduce-overhead")
    if mode in ("eager", "compiled"):
        warmed_up(step)

        def run() -> None:
            kept["result"] = step()

        subject = measure.Subject(mode, run, lambda: state_of(kept["result"]), synchronize=torch.cuda.synchronize,
                                  steps=options.eager_steps if mode == "eager" else options.steps)
    else:
        warmed_up(program)
        graph = torch.cuda.CUDAGraph()
        torch.manual_seed(2)
        if mode == "acs":
            import acs.torch

            with acs.torch.graph(graph) as recording:
                result = program()
            facts["report"] = recording.figures
        else:
            with torch.cuda.graph(graph):
                result = program()
            torch._C._cuda_clearCublasWorkspaces()  # else later graphs use the workspace of this one, which may be gone sooner
        kept |= {"graph": graph, "result": result}
        subject = measure.Subject(mode, lambda: kept["graph"].replay(), lambda: state_of(kept["result"]),
                                  synchronize=torch.cuda.synchronize, steps=options.steps)
    subject.facts |= facts | {"build_s": time.perf_counter() - begin}
    return subject


def run_row(name: str, options: Any, budget: measure.Budget) -> measure.Row:
    row: measure.Row = {"name": name, "scene": name, "modes": {}}
    chosen = [mode for mode in MODES if (mode in options.modes if options.modes else mode not in ON_REQUEST)]
    try:
        plain = [build(name, "graph", options).state_after(options.compare) for _ in range(measure.PLAIN_RUNS)]
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
        return row
    measure.fill(row, {mode: functools.partial(build, name, mode, options) for mode in chosen}, plain, options, budget)
    row["kernels"] = row["modes"].get("acs", {}).get("report", {}).get("ops", "")
    measure.add_gains(row, ENGINE, (), ACS)
    gc.collect()
    torch.cuda.empty_cache()
    return row


def main() -> None:
    options = measure.parser(__doc__)
    options.add_argument("--scenes", type=measure.words, default=list(networks.PROGRAMS), help="only these programs, a,b,c")
    options.add_argument("--steps", type=int, default=100, help="calls per batch, by graphs")
    options.add_argument("--compare", type=int, default=1, help="calls after which results are compared")
    given = options.parse_args()
    budget = measure.Budget(given.budget)
    report = measure.Report(given.json, list(MODES), vars(given), {"device": torch.cuda.get_device_name(),
                                                                    "cuda_toolkit": torch.version.cuda}, len(given.scenes))
    with report:
        for name in given.scenes:
            if not budget.is_spent():
                report.add(run_row(name, given, budget))
    report.close()


if __name__ == "__main__":
    main()
