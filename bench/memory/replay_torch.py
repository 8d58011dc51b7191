#!/usr/bin/env python3
"""Replays an allocation trace through PyTorch's caching allocator, and prints what acs-memory writes of a way, as JSON.

    acs-memory --only layers --write layers.csv
    bench/memory/replay_torch.py layers.csv [--use] [--reps N] > torch.json

`torch-meta` makes the same calls for tensors that have no memory: so much of `torch` is the interpreter's. Trace files are
checked by acs-memory, not here. Exit status: 0; 77: there is no torch, or no GPU.
"""
import argparse
import csv
import json
import os
import sys
import time

USED_BYTES = 4096  # as in way.h
WARM_US = 20000    # as in passes.cpp


def read_trace(path):
    """[(block, bytes)] of device memory, 0 bytes for a free, and the most bytes that are live at once."""
    events, live, size, peak = [], {}, 0, 0
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            block, device = row["block"], row["memory"] == "device"
            if device and row["event"] == "malloc":
                live[block] = int(row["bytes"])
                size += live[block]
                peak = max(peak, size)
                events.append((block, live[block]))
            elif device:
                size -= live.pop(block)
                events.append((block, 0))
    return events + [(block, 0) for block in live], peak


def clock_cost():
    """Seconds between two readings of the clock with nothing between them."""
    clock = time.perf_counter
    return min(-(clock() - clock()) for _ in range(1000))


def play(torch, device, events, use, cost):
    """One pass: seconds of each malloc and of each free, less the clock's, and until everything is complete."""
    blocks, clock, taken, given = {}, time.perf_counter, [], []
    begin = clock()
    for block, size in events:
        start = clock()
        if size:
            blocks[block] = torch.empty(size, dtype=torch.uint8, device=device)
            taken.append(clock() - start - cost)
            if use:
                blocks[block][:USED_BYTES].fill_(1)
        else:
            del blocks[block]
            given.append(clock() - start - cost)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return taken, given, clock() - begin


def p99(seconds):
    return sorted(seconds)[int(0.99 * len(seconds))] * 1e6


def measure(torch, name, events, peak, arguments):
    """The figures of one way, from a cold pass, warm ones, and a measured one in each repetition."""
    device, cost = torch.device("cuda" if name == "torch" else "meta"), clock_cost()
    cold, calls, total, taken, given, reserved = [], [], [], [], [], 0
    for _ in range(arguments.reps):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        first = play(torch, device, events, arguments.use, cost)
        cold.append((sum(first[0]) + sum(first[1])) * 1e6)
        begin, warmed = time.perf_counter(), False
        while not warmed or (time.perf_counter() - begin) * 1e6 < WARM_US:
            play(torch, device, events, arguments.use, cost)
            warmed = True
        timed = play(torch, device, events, arguments.use, cost)
        calls.append((sum(timed[0]) + sum(timed[1])) * 1e6)
        total.append(timed[2] * 1e6)
        taken += timed[0]
        given += timed[1]
        reserved = max(reserved, torch.cuda.memory_stats()["reserved_bytes.all.peak"])
    return {"name": name, "note": "through Python", "left_out": "", "wrong": "", "pairs": len(events) // 2,
            "live_bytes": peak, "reserved_bytes": reserved if name == "torch" else -1,
            "malloc_p99_us": p99(taken), "free_p99_us": p99(given),
            "calls_us": calls, "total_us": total, "cold_us": cold}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trace")
    parser.add_argument("--use", action="store_true", help="an op writes each block behind its malloc")
    parser.add_argument("--reps", type=int, default=5)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("replay_torch: PyTorch is not installed", file=sys.stderr)
        return 77
    if not torch.cuda.is_available():
        print("replay_torch: PyTorch finds no GPU", file=sys.stderr)
        return 77
    events, peak = read_trace(arguments.trace)
    runners = [measure(torch, name, events, peak, arguments) for name in ("torch", "torch-meta")]
    row = {"work": os.path.basename(arguments.trace), "use": int(arguments.use), "pairs": len(events) // 2,
           "live_bytes": peak, "reference": "torch", "reps": arguments.reps, "backend": "cuda", "runners": runners}
    json.dump({"program": "acs-memory (replay_torch)", "command": " ".join(["replay_torch.py"] + sys.argv[1:]),
               "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
               "commit": os.environ.get("BENCH_COMMIT", "unknown"),
               "machine": {"gpu": torch.cuda.get_device_name(), "cpus": os.cpu_count(),
                           "runtime_cuda": torch.version.cuda or ""},
               "rows": [row]}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
