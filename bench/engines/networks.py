"""Networks and training steps in plain PyTorch, as pytorch.py measures them. Weights are drawn; shapes are those of the papers."""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Program = Callable[[], Any]


def conv(inputs: int, outputs: int, size: int = 1, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU())


def separable(channels: int, size: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(nn.ReLU(), nn.Conv2d(channels, channels, size, stride, size // 2, groups=channels, bias=False),
                         nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels))


class Inception(nn.Module):
    """GoogLeNet's nine modules of four branches (Szegedy et al., 2015), from 28 x 28 x 192 on."""

    SHAPES = ((192, 64, 96, 128, 16, 32, 32), (256, 128, 128, 192, 32, 96, 64), (480, 192, 96, 208, 16, 48, 64),
              (512, 160, 112, 224, 24, 64, 64), (512, 128, 128, 256, 24, 64, 64), (512, 112, 144, 288, 32, 64, 64),
              (528, 256, 160, 320, 32, 128, 128), (832, 256, 160, 320, 32, 128, 128), (832, 384, 192, 384, 48, 128, 128))

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.ModuleList((
            conv(i, a), nn.Sequential(conv(i, b), conv(b, c, 3)), nn.Sequential(conv(i, d), conv(d, e, 5)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(i, f)))) for i, a, b, c, d, e, f in self.SHAPES)
        self.pool = nn.MaxPool2d(3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for place, branches in enumerate(self.branches):
            x = torch.cat([branch(x) for branch in branches], dim=1)
            if place in (1, 6):
                x = self.pool(x)
        return x.mean(dim=(2, 3))


class NasnetCell(nn.Module):
    """A normal cell of NASNet-A (Zoph et al., 2018): five sums of separable convolutions, pools and inputs."""

    def __init__(self, channels: int, inputs: int) -> None:
        super().__init__()
        self.fit = nn.ModuleList((nn.Conv2d(inputs, channels, 1), nn.Conv2d(inputs, channels, 1)))
        self.ops = nn.ModuleList((separable(channels, 3), separable(channels, 5), separable(channels, 3), separable(channels, 5),
                                  separable(channels, 3)))
        self.pool = nn.AvgPool2d(3, 1, 1)

    def forward(self, now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        a, b = self.fit[0](now), self.fit[1](before)
        parts = [self.ops[0](a) + a, self.ops[2](b) + self.ops[1](a), self.pool(a) + b, self.pool(b) + self.pool(b),
                 self.ops[3](b) + self.ops[4](b)]
        return torch.cat([b, *parts], dim=1)


class Nasnet(nn.Module):
    def __init__(self, cells: int = 6, channels: int = 44) -> None:
        super().__init__()
        self.cells = nn.ModuleList(NasnetCell(channels, 6 * channels) for _ in range(cells))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x
        for cell in self.cells:
            x, before = cell(x, before), x
        return x.mean(dim=(2, 3))


class Randwire(nn.Module):
    """Randomly wired networks (Xie et al., 2019): 32 nodes of a small-world graph, each with a separable convolution."""

    def __init__(self, nodes: int = 32, near: int = 4, rewire: float = 0.75, channels: int = 78) -> None:
        super().__init__()
        draw = random.Random(1)
        edges = set()
        for node in range(nodes):
            for step in range(1, near // 2 + 1):
                other = draw.randrange(nodes) if draw.random() < rewire else (node + step) % nodes
                if other != node:
                    edges.add((min(node, other), max(node, other)))
        self.sources = [sorted(a for a, b in edges if b == node) for node in range(nodes)]
        self.ops = nn.ModuleList(separable(channels, 3) for _ in range(nodes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: list[torch.Tensor] = []
        for op, sources in zip(self.ops, self.sources):
            total = made[sources[0]] if sources else x
            for source in sources[1:]:
                total = total + made[source]
            made.append(op(total))
        return torch.stack(made[-8:]).mean(dim=(0, 3, 4))


class Experts(nn.Module):
    """Eight feed-forward experts whose results are mixed by a gate, four times."""

    def __init__(self, width: int = 512, experts: int = 8, layers: int = 4) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(width, experts) for _ in range(layers))
        self.layers = nn.ModuleList(nn.ModuleList(nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
                                                  for _ in range(experts)) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for gate, experts in zip(self.gates, self.layers):
            weight = torch.softmax(gate(x), dim=-1)
            results = [expert(x) for expert in experts]
            for place, result in enumerate(results):
                x = x + result * weight[:, place:place + 1]
        return x


class Tables(nn.Module):
    """A recommender after DLRM (Naumov et al., 2019): 26 tables, a small network over the numbers, products of all pairs."""

    def __init__(self, tables: int = 26, width: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(10000, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + (tables + 1) ** 2, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, numbers: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        dense = self.bottom(numbers)
        found = torch.stack([dense, *[table(places[k]) for k, table in enumerate(self.tables)]], dim=1)
        pairs = (found @ found.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([dense, pairs], dim=1))


def encoder() -> nn.Module:
    """Four layers of a transformer's encoder, whose ops follow each other but for the projections."""
    return nn.Sequential(*[nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.0) for _ in range(4)])


def inference(make: Callable[[], nn.Module], *shape: int) -> Program:
    model = make().cuda().eval()
    x = torch.randn(*shape, device="cuda")

    def run() -> Any:
        with torch.no_grad():
            return model(x)

    return run


def recommender() -> Program:
    model = Tables().cuda().eval()
    numbers, places = torch.randn(16, 13, device="cuda"), torch.randint(10000, (26, 16, 8), device="cuda")

    def run() -> Any:
        with torch.no_grad():
            return model(numbers, places)

    return run


def policies(count: int = 8, train: bool = False) -> Program:
    """Small networks that have nothing in common: a decision of each, or a step of training of each."""
    models = [nn.Sequential(nn.Linear(48, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 12)).cuda()
              for _ in range(count)]
    x, y = torch.randn(256, 48, device="cuda"), torch.randn(256, 12, device="cuda")
    optimizers = [torch.optim.Adam(model.parameters(), capturable=True) for model in models]

    def decide() -> Any:
        with torch.no_grad():
            return [model(x) for model in models]

    def learn() -> Any:
        losses = []
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad(set_to_none=True)
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return losses

    return learn if train else decide


PROGRAMS: dict[str, Callable[[], Program]] = {
    "inception": lambda: inference(Inception, 1, 192, 28, 28),
    "nasnet": lambda: inference(Nasnet, 1, 264, 14, 14),
    "randwire": lambda: inference(Randwire, 1, 78, 28, 28),
    "experts": lambda: inference(Experts, 8, 512),
    "recommender": recommender,
    "policies": policies,
    "policies_training": lambda: policies(train=True),
    "encoder": lambda: inference(encoder, 1, 64, 256),
}
"""By name: what makes a program, whose results are those of its last call."""
