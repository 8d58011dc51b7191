#!/usr/bin/env python3
"""
Five bodies learn to walk: physics by ACS, policies by PyTorch, on one GPU (or on the CPU, slowly).

usage: train.py [--library FILE] [--scenes N] [--worlds N] [--iterations N] [--curve FILE.svg] [--seed N] [--serial]

Each scene is a body plan in many worlds (samples/physics). A step launches some hundred small kernels, which ACS runs side by
side. Each body has a policy that adjusts the rhythm with which the sample drives it, and learns by PPO: clipped policy
gradients. PyTorch's work and the simulation's are in one order, without a wait of the program: acs.torch.region.

Prints the time of a step, and the mean reward of each body (mostly its speed in m/s) as it learns; --curve draws them.
Exit status: 0, 77 where PyTorch or the environment's library is missing.
"""
import argparse
import ctypes
import pathlib
import sys
import time

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

import acs
import acs.torch

ROLLOUT, EPOCHS, CLIP, DISCOUNT, LAMBDA = 32, 4, 0.2, 0.98, 0.95
REACH = 0.5  # radians by which a policy moves a motor's angle at most
LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build/release/samples/libphysics_environment.so"


class View(ctypes.Structure):
    """environment_view of samples/physics/environment.h."""
    _fields_ = [("name", ctypes.c_char_p)] + [(name, ctypes.c_int) for name in ("worlds", "observed", "actions", "horizon")] + \
               [(name, ctypes.c_void_p) for name in ("obs", "act", "reward", "done")] + [("drive", ctypes.POINTER(ctypes.c_float))]


class Memory:
    """Memory of a GPU, for torch.as_tensor."""

    def __init__(self, at, shape, typestr):
        self.__cuda_array_interface__ = {"data": (at, False), "shape": shape, "typestr": typestr, "version": 3}


def tensor_at(at, shape, dtype, device):
    """The environment's memory as a tensor."""
    if device.type == "cuda":
        return torch.as_tensor(Memory(at, shape, "<f4" if dtype is torch.float32 else "<i4"), device=device)
    count = 1
    for size in shape:
        count *= size
    return torch.frombuffer((ctypes.c_char * (4 * count)).from_address(at), dtype=dtype).reshape(shape)


class Environment:
    def __init__(self, path, context, scenes, worlds, seed):
        self.library = ctypes.CDLL(str(path))
        self.library.environment_open.restype = ctypes.c_void_p
        self.library.environment_open.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64]
        self.library.environment_kernels.restype = ctypes.c_uint64
        for name in ("step", "kernels", "close"):
            getattr(self.library, "environment_" + name).argtypes = [ctypes.c_void_p]
        self.library.environment_scene.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(View)]
        self.context = context
        self.at = self.library.environment_open(context.handle, scenes, worlds, seed)
        if not self.at:
            raise ValueError(f"an environment of {scenes} scenes with {worlds} worlds")
        self.scenes = [self.scene(k) for k in range(scenes)]

    def scene(self, index):
        view = View()
        self.library.environment_scene(self.at, index, ctypes.byref(view))
        return view

    def step(self):
        """One step of all scenes: behind PyTorch's work, and before what PyTorch does next."""
        with acs.torch.region(self.context) as region:
            region.begin_ops()
            self.library.environment_step(self.at)

    def kernels(self):
        return self.library.environment_kernels(self.at)

    def close(self):
        self.library.environment_close(self.at)


class Body:
    """A scene as its policy sees it, and the policy."""

    def __init__(self, view, device):
        self.name = view.name.decode()
        self.obs = tensor_at(view.obs, (view.observed, view.worlds), torch.float32, device)
        self.act = tensor_at(view.act, (view.actions, view.worlds), torch.float32, device)
        self.reward = tensor_at(view.reward, (view.worlds,), torch.float32, device)
        self.done = tensor_at(view.done, (view.worlds,), torch.int32, device)
        drive = torch.tensor(view.drive[:6 * view.actions], device=device).reshape(view.actions, 6)
        self.offset, self.amplitude, self.gain, self.bias, self.cos, self.sin = drive.T[:, None]
        self.actor = network(view.observed, view.actions, 0.01).to(device)
        self.critic = network(view.observed, 1, 1.0).to(device)
        self.log_std = torch.nn.Parameter(torch.full((view.actions,), -0.7, device=device))
        parameters = [*self.actor.parameters(), *self.critic.parameters(), self.log_std]
        self.optimizer = torch.optim.Adam(parameters, lr=1e-3, foreach=True)
        self.parameters = parameters

    def seen(self):
        return (self.obs.T * 0.5).clamp(-5, 5)

    def decide(self, seen):
        """Draw what to add to the rhythm, and set the motors' angles."""
        mean = self.actor(seen)
        chosen = mean + self.log_std.exp() * torch.randn_like(mean)
        beat = (self.gain * (self.obs[10, :, None] * self.cos + self.obs[11, :, None] * self.sin) + self.bias).clamp(-1, 1)
        self.act.copy_((self.offset + self.amplitude * beat + REACH * torch.tanh(chosen)).T)
        return chosen, self.log_likelihood(mean, chosen)

    def log_likelihood(self, mean, chosen):
        return (-0.5 * ((chosen - mean) / self.log_std.exp()) ** 2 - self.log_std).sum(-1)


def network(inputs, outputs, scale):
    layers = [torch.nn.Linear(inputs, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, outputs)]
    with torch.no_grad():
        layers[-1].weight.mul_(scale)
        layers[-1].bias.zero_()
    return torch.nn.Sequential(*layers)


def roll_out(environment, bodies):
    """Some steps of all worlds. Returns for each body what it saw, chose and got."""
    kept = [{name: [] for name in ("seen", "chosen", "likely", "reward", "done")} for _ in bodies]
    with torch.no_grad():
        for _ in range(ROLLOUT):
            for body, trace in zip(bodies, kept):
                seen = body.seen()
                chosen, likely = body.decide(seen)
                body.reward.zero_()
                for name, value in (("seen", seen), ("chosen", chosen), ("likely", likely)):
                    trace[name].append(value)
            environment.step()
            for body, trace in zip(bodies, kept):
                trace["reward"].append(body.reward.clone())
                trace["done"].append(body.done.float())
    return [{name: torch.stack(values) for name, values in trace.items()} for trace in kept]


def advantages(body, trace):
    """Generalized advantage estimates, and the returns that the critic should have told."""
    values = body.critic(torch.cat([trace["seen"], body.seen()[None]])).squeeze(-1)
    advantage, last = torch.empty_like(trace["reward"]), 0.0
    for t in reversed(range(ROLLOUT)):
        goes_on = 1 - trace["done"][t]
        error = trace["reward"][t] + DISCOUNT * goes_on * values[t + 1] - values[t]
        advantage[t] = last = error + DISCOUNT * LAMBDA * goes_on * last
    return advantage, advantage + values[:-1]


def learn(body, trace):
    with torch.no_grad():
        advantage, target = advantages(body, trace)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    for _ in range(EPOCHS):
        ratio = (body.log_likelihood(body.actor(trace["seen"]), trace["chosen"]) - trace["likely"]).exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        miss = (body.critic(trace["seen"]).squeeze(-1) - target).square().mean()
        body.optimizer.zero_grad()
        (miss * 0.5 - gain).backward()
        torch.nn.utils.clip_grad_norm_(body.parameters, 0.5)
        body.optimizer.step()
    return trace["reward"].mean()


def draw(path, names, curves):
    """The curves as a picture: a line for each body."""
    wide, high, colours = 640, 360, ("#c0392b", "#2471a3", "#1e8449", "#b9770e", "#6c3483")
    low, top = min(map(min, curves)), max(map(max, curves))
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 140}" height="{high + 50}" font-family="sans-serif" font-size="13">',
             f'<rect x="40" y="10" width="{wide}" height="{high}" fill="none" stroke="#999"/>',
             f'<text x="4" y="20">{top:.1f}</text><text x="4" y="{high + 10}">{low:.1f}</text>',
             f'<text x="{wide // 2 - 60}" y="{high + 35}">mean reward of a step, by iteration (0 to {len(curves[0]) - 1})</text>']
    for k, (name, curve) in enumerate(zip(names, curves)):
        points = " ".join(f"{40 + wide * i / max(len(curve) - 1, 1):.1f},{10 + high * (top - y) / (top - low or 1):.1f}"
                          for i, y in enumerate(curve))
        colour = colours[k % len(colours)]
        lines += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  f'<text x="{wide + 50}" y="{30 + 20 * k}" fill="{colour}">{name}</text>']
    pathlib.Path(path).write_text("\n".join([*lines, "</svg>\n"]))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, default=LIBRARY, help="libphysics_environment.so")
    parser.add_argument("--scenes", type=int, default=5)
    parser.add_argument("--worlds", type=int, help="of each scene; 1024 on a GPU, 32 on the CPU")
    parser.add_argument("--iterations", type=int, help="150 on a GPU, 10 on the CPU")
    parser.add_argument("--curve", help="draw the reward into this SVG file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serial", action="store_true", help="ops one after another, for comparison")
    return parser.parse_args()


def main():
    options = arguments()
    if not options.library.exists():
        print(f"skipped: {options.library} is missing (cmake --build --preset release --target physics_environment)")
        return 77
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    worlds = options.worlds or (1024 if device.type == "cuda" else 32)
    iterations = options.iterations or (150 if device.type == "cuda" else 10)
    torch.manual_seed(options.seed)
    context = acs.Context(backend="cuda" if device.type == "cuda" else "host", serial=options.serial)
    environment = Environment(options.library, context, options.scenes, worlds, options.seed)
    bodies = [Body(view, device) for view in environment.scenes]
    print(f"{options.scenes} scenes of {worlds} worlds on {torch.cuda.get_device_name() if device.type == 'cuda' else 'the CPU'}, "
          f"{'one op after another' if options.serial else 'out of order'}")
    print("iteration   " + "".join(f"{body.name:>11}" for body in bodies) + "   us a step (simulation and policies)")
    curves = [[] for _ in bodies]
    for iteration in range(iterations):
        begin = time.perf_counter()
        traces = roll_out(environment, bodies)
        if device.type == "cuda":
            torch.cuda.synchronize()
        step_us = (time.perf_counter() - begin) / ROLLOUT * 1e6
        for curve, body, trace in zip(curves, bodies, traces):
            curve.append(float(learn(body, trace)))
        if iteration % max(iterations // 15, 1) == 0 or iteration == iterations - 1:
            print(f"{iteration:9}   " + "".join(f"{curve[-1]:11.3f}" for curve in curves) + f"   {step_us:8.0f}", flush=True)
    print(f"{environment.kernels() / iterations / ROLLOUT:.0f} kernels a step, {iterations * ROLLOUT * worlds * len(bodies)} steps of worlds")
    if options.curve:
        draw(options.curve, [body.name for body in bodies], curves)
        print(f"curve: {options.curve}")
    environment.close()
    context.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
