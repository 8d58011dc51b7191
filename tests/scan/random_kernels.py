#!/usr/bin/env python3
"""Writes CUDA kernels of random guards, loops and indices, for try_kernels.py: random_kernels.py COUNT SEED > kernels.cu"""

import random
import sys

_TYPES = ("int", "unsigned", "int", "unsigned", "long long", "unsigned long long", "short", "unsigned short", "signed char",
          "unsigned char")
_CONSTANTS = ("0", "1", "2", "3", "5", "8", "16", "31", "64", "-1", "100")
_PLACES = ("threadIdx.x", "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.y", "blockIdx.y", "blockDim.x", "gridDim.x",
           "blockIdx.x",
           "threadIdx.x + blockDim.x * threadIdx.y")


class Kernel:
    """The text of one kernel."""

    def __init__(self, seed):
        self.random, self.names, self.depth, self.count, self.loops = random.Random(seed), [], 0, 0, 0
        r = self.random
        self.sizes = [(r.choice(_TYPES), f"n{i}") for i in range(r.randrange(2, 5))]
        self.names = [name for _, name in self.sizes]
        self.lines = []
        for i in range(r.randrange(1, 3)):
            self._declare(r.choice(("int", "unsigned", "long long", "int")), r.choice(_PLACES[:2] + _PLACES))

    def _say(self, text):
        self.lines.append("    " * (self.depth + 1) + text)

    def _name(self):
        return self.random.choice(self.names)

    def _leaf(self):
        r = self.random.random()
        place = f"(int)({self.random.choice(_PLACES)})"
        return self._name() if r < 0.65 else self.random.choice(_CONSTANTS) if r < 0.85 else place

    def _value(self, depth=2):
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return self._leaf()
        a, b = self._value(depth - 1), self._value(depth - 1)
        kind = r.random()
        if kind < 0.55:
            return f"({a} {r.choice('++--*')} {b})"
        if kind < 0.62:
            return f"({a} {r.choice('/%')} {r.choice(('2', '3', '7', '16', f'({b} | 1)'))})"
        if kind < 0.7:
            return f"({a} {r.choice(('& 15', '& 255', '| 3', '^ 1', '>> 1', '<< 1', '>> 3', '& ~3'))})"
        if kind < 0.8:
            return f"{r.choice(('min', 'max'))}((int)({a}), (int)({b}))"
        if kind < 0.84:
            return f"{r.choice(('min', 'max'))}((unsigned)({a}), (unsigned)({b}))"
        if kind < 0.9:
            return f"(({r.choice(_TYPES)}){a})"
        return f"({self._condition(0)} ? {a} : {b})"

    def _condition(self, depth=1):
        r = self.random
        if depth and r.random() < 0.35:
            return f"({self._condition(depth - 1)} {r.choice(('&&', '&&', '||'))} {self._condition(depth - 1)})"
        a, b = self._value(1), self._leaf()
        if r.random() < 0.25:
            a, b = f"(unsigned)({a})", f"(unsigned)({b})"
        return f"({'!' if r.random() < 0.1 else ''}({a} {r.choice(('<', '<', '<=', '>', '>=', '==', '!='))} {b}))"

    def _declare(self, kind, value):
        name = f"v{self.count}"
        self.count += 1
        self._say(f"{kind} {name} = ({kind})({value});")
        self.names.append(name)
        return name

    def _store(self):
        r = self.random
        index = self._value(r.choice((0, 1, 1, 2)))
        way = r.random()
        if way < 0.7:
            self._say(f"{r.choice('pq')}[{index}] = {r.choice('12')};")
        elif way < 0.9:
            self._say(f"{r.choice('pq')}[{index}] = s[{self._value(1)}];")
        else:
            self._say(f"atomicAdd(&{r.choice('pq')}[{index}], 1);")

    def _body(self, size):
        known = len(self.names)
        self.depth += 1
        for _ in range(size):
            self.statement()
        self.depth -= 1
        del self.names[known:]

    def _loop(self):
        r = self.random
        kind, name, first = r.choice(("int", "unsigned", "int", "long long")), f"v{self.count}", self._leaf()
        self.count += 1
        end, step = self._leaf(), r.choice(("1", "1", "1", "2", "3", "blockDim.x", "gridDim.x * blockDim.x", self._leaf()))
        test = f"{name} {r.choice(('<', '<', '<', '<=', '!='))} {end}"
        change = f"{name} += {step}"
        if r.random() < 0.25:
            first, end = end, first
            test, change = f"{name} {r.choice(('>', '>=', '!='))} {end}", f"{name} -= {step}"
        if r.random() < 0.15:
            test += f" && {self._condition(0)}"
        self.loops += 1
        way = r.random()
        known = len(self.names)
        self.names += [name, name]
        if way < 0.7:
            self._say(f"for ({kind} {name} = {first}; {test}; {change}) {{")
            self._body(r.randrange(1, 4))
            self._say("}")
            del self.names[known:]
        else:
            self._say(f"{kind} {name} = {first};")
            self._say("do {" if way < 0.85 else f"while ({test}) {{")
            self._body(r.randrange(1, 3))
            self.depth += 1
            self._say(f"{change};")
            if r.random() < 0.4:
                self._store()
            self.depth -= 1
            self._say(f"}} while ({test});" if way < 0.85 else "}")
        self.loops -= 1

    def statement(self):
        """Adds one."""
        r = self.random
        way = r.random() if self.depth < 4 else r.random() * 0.55
        if way < 0.4:
            self._store()
        elif way < 0.48:
            self._declare(r.choice(_TYPES), self._value())
        elif way < 0.52:
            leave = r.choice(("break", "continue", "return")) if self.loops else "return"
            self._say(f"if {self._condition()} {leave};")
        elif way < 0.55:
            self._say(f"{self.random.choice([n for n in self.names if n[0] == 'v'] or ['n0'])} += {self._leaf()};")
        elif way < 0.75:
            self._say(f"if {self._condition()} {{")
            self._body(r.randrange(1, 3))
            if r.random() < 0.3:
                self._say("} else {")
                self._body(1)
            self._say("}")
        else:
            self._loop()

    def text(self, name):
        """All of it."""
        for _ in range(self.random.randrange(2, 5)):
            self.statement()
        sizes = ", ".join(f"{kind} {n}" for kind, n in self.sizes)
        head = f'extern "C" __global__ void {name}(int *p, int *q, const int *s, {sizes})'
        return "\n".join([head, "{", *self.lines, "}", ""])


def main():
    count, seed = int(sys.argv[1]), sys.argv[2]
    for i in range(count):
        print(Kernel(f"{seed} {i}").text(f"random_{i}"))


main()
