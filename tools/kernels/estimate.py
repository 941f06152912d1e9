"""Estimates the time of a launch on a device, from the instructions that the vendor's compiler made of its kernel.

THE MODEL. A group works in slices: the rounds of the outermost loop around the hot one, which is the loop with the most
multiply-adds; where nothing multiplies, the whole kernel is one slice. Per slice and group, in clocks of a core:
  issue   warps * instructions / schedulers. One instruction a clock and scheduler (NVIDIA, RDNA), or in four clocks
          (waves of 64 on 16 lanes). AMD and Intel issue scalar and memory instructions of other warps beside.
  fma     warps * multiply-adds * clocks of one in its pipe (hardware.py).
  local   bytes through local memory and the first-level cache; a 16-byte read of NVIDIA takes 4 passes, 2 where
          neighbouring lanes read one address, which kernels that read 16 bytes at a time are taken to do.
  fill    bytes that come from the second-level cache: what the loads of the slice bring. Without local memory
          neighbours share lines: a quarter of it.
  busy    (max(issue, fma)^4 + local^4 + fill^4)^(1/4): pipes overlap, but not quite; the exponent was chosen.
  wait    barriers, and the latency of global loads unless they stand before the multiply-adds and what stores them in
          local memory behind most of these; then only what is longer than the multiply-adds of all resident groups.
Two closed queues by mean value analysis: warps of a scheduler cover each other's reads of local memory; resident
groups (without barriers: warps) cover each other's waits. Then over the launch: slices, what stands outside the loop
and two global latencies a round of groups, groups dealt to cores, as many at once as registers, local memory and slots
allow; never faster than the memory delivers weights and what does not stay in the cache, or the second-level cache
what is loaded.

The code does not say how often loops run. The multiply-adds of a node are known: divided by those of a slice, they give
the rounds. TILES says how deep a slice is and how many sums a work-item has, by the names of its defines; of attention
it is known how much of a slice each of its two products is. Where TILES does not know a kernel, the hot loop runs as often as the work needs, a loop around it as often as the recipe says of its
longest loop, and all others once. Where nothing multiplies, loops of loads run until everything that the launch reads is
read. Nested loops of a launch with arguments that are read seldom (In::seldom) do not run.

Not modelled: clock rates that fall under load, conflicts of registers' banks, divergence, misses of the instruction cache,
atomics; both sides of branches in a loop count. tools/kernels/README.md has the error against published figures."""

import collections
import math
from dataclasses import dataclass

import isa
from hardware import ARCH, DEVICES

EXPONENT = 4
MEMORY_SHARE = 0.88  # of the memory's rate that long transfers reach


@dataclass(frozen=True)
class Tile:
    rows: int     # of a group
    columns: int
    depth: int    # of a slice

    def __str__(self):
        return f"{self.rows}x{self.columns}x{self.depth}"


def square(d):
    """Kernels of TX x TY work-items with WM x WN sums each."""
    return Tile(int(d["TY"]) * int(d["WM"]), int(d["TX"]) * int(d["WN"]), int(d["TILE_K"]))


def warps(d):
    """Kernels of WARPS_M x WARPS_N warps of LANES_M x (32 / LANES_M) lanes with TM x TN sums each. Those of bytes (W is
    a type) count words of four in TILE_K."""
    lanes, depth = int(d["LANES_M"]), int(d["TILE_K"]) * (4 if "W" in d else 1)
    return Tile(int(d["WARPS_M"]) * lanes * int(d["TM"]), int(d["WARPS_N"]) * 32 // lanes * int(d["TN"]), depth)


def sub_groups(d):
    """Kernels of WARPS sub-groups of LANES lanes, each of which has ROWS rows of 4 * LANES columns."""
    return Tile(int(d["WARPS"]) * int(d["ROWS"]), 4 * int(d["LANES"]), int(d["LANES"]))


TILES = [square, warps, sub_groups]


def tile_of(launch):
    """The tile of a launch by the names of its defines; nothing where they are not those of a tile."""
    if "tile" in launch:
        return Tile(*launch["tile"])
    for make in TILES:
        try:
            return make(launch["defines"])
        except (KeyError, ValueError):
            continue
    return None


def of_a_product(launch):
    """Attention by tiles has two products in a slice, of as many multiply-adds a work-item: the scores of a tile of
    keys, and what its values add to the result. A work-item has 16 of the scores."""
    return 16 * int(launch["defines"]["D"]) if launch["source"] in ("attention/flash.cl", "attention/matrix.cl") else None


def depth_of(launch):
    """The multiply-adds of one sum of a group: all of K, or the part that the argument part_k or part_words gives."""
    depth = launch["operations"] / 2 / max(1, launch["output_elements"])
    steps = {"part_k": 1, "part_words": 4}
    parts = [a["value"] * steps[a["name"]] for a in launch["arguments"] if a["name"] in steps]
    return min([depth, *parts])


def queue(service, wait, n):
    """Share of time a server is busy with n customers that each wait between two services: mean value analysis, for
    exponential service, which is pessimistic by up to 10 % for two or three."""
    inside, rate = 0.0, 0.0
    for i in range(1, max(n, 0) + 1):
        response = service * (1 + inside)
        rate = i / max(wait + response, 1e-9)
        inside = rate * response
    return min(1.0, rate * service)


@dataclass
class Occupancy:
    groups: int  # resident on a core
    warps: int   # of a group
    limit: str   # what prevents more


def occupancy(kernel, threads, local_bytes):
    a = ARCH[kernel.arch]
    warps = math.ceil(threads / (kernel.simd or a.warp))
    step = math.ceil(max(kernel.registers, 1) / a.register_step) * a.register_step
    if a.vendor == "intel":  # a thread has 128 registers, or 256 at half as many threads
        resident = a.warps // (2 if kernel.registers > 128 else 1)
    elif a.vendor == "amd":
        resident = min(a.registers // a.schedulers // a.warp // step * a.schedulers, a.warps)
    else:
        resident = min(a.registers // (min(step, a.max_registers) * a.warp), a.warps)
    limits = {"registers": resident // warps, "slots": min(a.groups, a.warps // warps)}
    if local_bytes:
        limits["local memory"] = a.local // local_bytes
    limit = min(limits, key=limits.get)
    return Occupancy(limits[limit], warps, limit)


def moved(launch):
    """Bytes that must be read and written at least once. An op that only moves elements reads no more than it writes."""
    read, written = launch["read_bytes"], launch["written_bytes"]
    return written + (min(read, written) if launch["work"] == "movement" else read)


class Trips:
    """How often each instruction of a kernel runs for one work-item."""

    def __init__(self, kernel, launch):
        self.kernel, self.launch = kernel, launch
        a = ARCH[kernel.arch]
        self.lanes = 8 / (kernel.simd or 8) if a.vendor == "intel" else 1
        self.tile = tile_of(launch)
        self.threads = math.prod(launch["local"])
        self.items = max(1, math.prod(launch["global"]))
        loops = [tuple(loop) for loop in kernel.loops]
        self.multiplies = launch["work"] == "multiply-adds" and launch["operations"] > 0
        # Operands that a launch reads seldom are read by nested loops, which do not run as a rule.
        seldom = [] if not any(a.get("seldom") for a in launch["arguments"]) else [
            l for l in loops if any(m != l and (m[0] >= l[0] and m[1] <= l[1] or m[0] <= l[0] and m[1] >= l[1])
                                    for m in loops)]
        loops = [l for l in loops if l not in seldom]
        self.hot = self.find_hot(loops)
        counted = self.hot and self.multiplies and self.own(self.hot, isa.MULTIPLIES)
        around = [l for l in loops if counted and l[0] <= self.hot[0] and l[1] >= self.hot[1]]
        self.chain = sorted(around, key=lambda l: l[0] - l[1])  # outermost first
        self.trips = {}
        if counted:
            self.count_multiplies(loops)
        else:
            self.count_loads(loops)
        self.slices = self.trips.get(self.chain[0], 1.0) if self.chain else 1.0
        self.trips.update({l: 0.0 for l in seldom})

    def multiply_adds(self, first, last):
        """Multiply-adds of a lane in one round."""
        if self.kernel.mix(first, last)["mma"]:
            return sum(n for c, n in self.kernel.code[first:last + 1] if c == "mma")
        return sum({"fma": n if self.lanes != 1 else 1, "fma2": 2}.get(c, 0)
                   for c, n in self.kernel.code[first:last + 1]) * self.lanes

    def find_hot(self, loops):
        if self.multiplies:
            # Behind a loop of few matrix instructions there may be one of an activation's many multiply-adds.
            best = max(loops, key=lambda l: (self.own(l, ("mma",)), self.own(l, isa.MULTIPLIES), l[0] - l[1]), default=None)
            if best and self.own(best, isa.MULTIPLIES):
                return best
        return max(loops, key=lambda l: (self.own(l, ("ldg", "lds")), l[0] - l[1]), default=None)

    def own(self, loop, classes):
        """Instructions of these classes in a loop and in none inside it."""
        inside = [l for l in map(tuple, self.kernel.loops) if l != loop and l[0] >= loop[0] and l[1] <= loop[1]]
        return sum(1 for i in range(loop[0], loop[1] + 1)
                   if self.kernel.code[i][0] in classes and not any(l[0] <= i <= l[1] for l in inside))

    def needed(self):
        """Multiply-adds that a work-item makes, edges of tiles included."""
        if self.tile is None:
            return self.launch["operations"] / 2 / self.items
        return self.tile.rows * self.tile.columns * depth_of(self.launch) / self.threads

    def count_multiplies(self, loops):
        """Rounds of the loops around the multiply-adds, from the multiply-adds of the work."""
        longest, outer = max(1, self.launch["longest_loop"]), self.chain[0]
        done = max(self.multiply_adds(*self.hot), 1e-9)
        total = max(1.0, self.needed() / done)  # rounds of the hot loop
        each = of_a_product(self.launch)
        if self.hot == outer:
            self.trips[outer] = total
        elif each:
            self.trips[outer] = max(1.0, self.needed() / (2 * each))
            for loop in loops:
                if outer[0] <= loop[0] and loop[1] <= outer[1] and loop != outer and self.own(loop, isa.MULTIPLIES):
                    self.trips[loop] = max(1.0, each / self.multiply_adds(*loop))
        else:
            rounds = longest
            if self.tile is not None:
                rounds = self.needed() * self.threads / (self.tile.rows * self.tile.columns * self.tile.depth)
            rounds = min(max(rounds, 1.0), total)
            self.trips[outer] = rounds
            self.trips[self.hot] = total / rounds
        self.find_loaders(loops)

    def count_loads(self, loops):
        """Nothing multiplies: each loop of loads reads what the launch reads, as far as the recipe says that loops go;
        the loops inside another are windows and the like: short."""
        longest = max(1, self.launch["longest_loop"])
        for loop in loops:
            depth = sum(1 for l in loops if l[0] <= loop[0] and l[1] >= loop[1])
            each = sum(n for c, n in self.kernel.code[loop[0]:loop[1] + 1] if c == "ldg")
            rounds = moved(self.launch) / self.items / each if each else longest
            self.trips[loop] = min(max(rounds, 1.0), longest) if depth == 1 else min(longest, 4.0)

    def find_loaders(self, loops):
        """Rolled loops of a slice that bring the operands of a tile: first the rows', then the columns'. A compiler
        may have made two of one: a body with several loads, and one for what remains."""
        if self.tile is None:
            return
        outer = self.chain[0]
        loads = {l: self.own(l, ("ldg",)) for l in loops if l not in self.chain and l[0] >= outer[0] and l[1] <= outer[1]
                 and not self.own(l, isa.MULTIPLIES)}
        pairs, left = [], [l for l in loads if loads[l]]
        while left:
            loop = left.pop(0)
            if left and (loads[loop] == 1) != (loads[left[0]] == 1):
                pairs.append((loop, left.pop(0)))
            else:
                pairs.append((loop,))
        owed = [self.tile.rows * self.tile.depth, self.tile.columns * self.tile.depth][-len(pairs):] if pairs else []
        for pair, elements in zip(pairs, owed):
            rest = elements / self.threads
            for loop in sorted(pair, key=loads.get, reverse=True):
                got = sum(n for c, n in self.kernel.code[loop[0]:loop[1] + 1] if c == "ldg") / 4
                self.trips[loop] = float(rest // got) if len(pair) > 1 else max(1.0, rest / got)
                rest -= self.trips[loop] * got

    def weights(self):
        """Rounds of each instruction: per slice inside the outermost loop of the chain, per work-item outside."""
        w = [1.0] * len(self.kernel.code)
        for loop in map(tuple, self.kernel.loops):
            if self.chain and loop == self.chain[0]:
                continue
            for i in range(loop[0], loop[1] + 1):
                w[i] *= self.trips.get(loop, 1.0)
        return w


class Estimate:
    """The estimate of one launch on one device. Times are in seconds."""

    def __init__(self, kernel, launch, device):
        self.kernel, self.launch, self.device = kernel, launch, DEVICES[device]
        self.a = a = ARCH[self.device.arch]
        kernel.arch = self.device.arch  # a phone's kernel was compiled for another architecture
        trips = self.trips = Trips(kernel, launch)
        self.tile = trips.tile
        self.threads = trips.threads
        self.groups = trips.items // max(trips.threads, 1)
        self.local_bytes = kernel.local + sum(x["bytes"] for x in launch["arguments"] if x["kind"] == "local")
        held = occupancy(kernel, self.threads, self.local_bytes)
        self.resident, self.warps, self.limit = max(held.groups, 1), held.warps, held.limit
        self.spilled = kernel.spills
        if a.spills == "registers":
            self.spilled = 4 * max(0, kernel.registers - a.max_registers)
        self.first, self.last = trips.chain[0] if trips.chain else (0, len(kernel.code) - 1)
        self.weight = trips.weights()
        self.slices = max(1.0, trips.slices)
        self.count_slice()
        self.count_waits()
        self.core = self.core_seconds()
        self.find_time()

    def count_slice(self):
        a, k = self.a, self.kernel
        mix = self.mix = k.mix(self.first, self.last, self.weight)
        body = [(c, n, self.weight[i]) for i, (c, n) in enumerate(k.code) if self.first <= i <= self.last]
        vector = sum(mix[c] for c in (*isa.MULTIPLIES, "vec", "int", "spill"))
        warps, share = self.warps, self.warps / a.schedulers
        if a.vendor == "intel":
            self.issue = share * max(sum(n * w for c, n, w in body if c in ("fma", "mma", "vec")),
                                     sum(n * w for c, n, w in body if c in ("int", "scalar")))
        elif a.vendor in ("amd", "phone"):
            self.issue = max(share * vector * a.vector_clocks,
                             warps * (mix["scalar"] + mix["branch"]) / (1 if a.vector_clocks == 4 else 2))
        else:
            self.issue = share * sum(mix.values())
        # The pipe of ordinary multiply-adds; Intel's counts in clocks above, matrix instructions by their rate.
        ordinary = mix["fma"] + mix["fma2"]
        self.fma = 0 if a.vendor == "intel" else share * ordinary * a.fma_clocks
        if mix["mma"] and a.matrix_flops:
            self.fma = self.threads * 2 * mix["mma"] * 16 * 8 * 16 / 32 / a.matrix_flops
        lanes = k.simd or a.warp
        clocks = 0.0
        for c, n, w in body:
            if c not in ("lds", "sts", "ldg", "copy"):
                continue  # one pipe for local memory and the first-level cache
            passes = max(1, n / 4) if a.vendor == "nvidia" else max(1, n * lanes / a.local_rate)
            if a.vendor == "nvidia" and c == "lds" and n == 16:
                passes = 2
            clocks += passes * w
        if a.spills == "registers":
            # Each value beyond the last register is written and read once for each step along a slice.
            depth = self.tile.depth if self.tile else 1
            clocks += 2 * max(1, 4 * lanes / a.local_rate) * self.spilled / 4 * depth
        self.local = warps * clocks
        loaded = self.threads * sum(n * w for c, n, w in body if c in ("ldg", "copy"))
        self.loaded = loaded * (1.0 if self.local_bytes or self.tile else 0.25)
        self.fill = self.loaded / a.fill

    def count_waits(self):
        a, k, t = self.a, self.kernel, self.trips
        code = [c for c, _ in k.code[self.first:self.last + 1]]
        multiplies = [i for i, c in enumerate(code) if c in isa.MULTIPLIES]
        store = next((i for i, c in enumerate(code) if c == "sts"), len(code))
        loads = any(c in ("ldg", "copy") for c in code)
        before = sum(1 for i in multiplies if i < store)
        self.ahead = "copy" in code or (loads and "sts" in code and before > len(multiplies) / 2)
        self.barriers = a.barrier * self.mix["barrier"]
        # Each loop with loads waits once a round, because the compiler issues the loads of a round together.
        inner = [l for l in map(tuple, k.loops) if l != (self.first, self.last) and l[0] >= self.first and l[1] <= self.last]
        straight = [i for i, c in enumerate(code, self.first) if c == "ldg" and not any(l[0] <= i <= l[1] for l in inner)]
        rounds = (1.0 if straight else 0.0) + sum(self.weight[l[0]] for l in inner if t.own(l, ("ldg",)))
        self.latency = a.global_latency * (1.0 if self.ahead else rounds) * (1 if loads else 0)
        hot = t.hot if t.hot in t.trips and t.hot != (self.first, self.last) else None
        self.inner_wait = a.local_latency * (self.weight[hot[0]] if hot else 1.0) * (1 if self.mix["lds"] else 0)
        outside = sum(w for i, w in enumerate(self.weight) if not self.first <= i <= self.last)
        self.outside = max(self.warps / a.schedulers, 1) * outside * a.vector_clocks

    def busy(self, groups):
        """Clocks of the core for one group's slice. Fewer warps than schedulers leave some idle."""
        idle = max(1.0, self.a.schedulers / (self.warps * groups))
        parts = (max(self.issue, self.fma) * idle, self.local, self.fill)
        return max(1e-6, sum(x ** EXPONENT for x in parts) ** (1 / EXPONENT))

    def clocks(self, groups):
        """Clocks of the core per slice of one group, with so many groups resident."""
        busy = self.busy(groups)
        per_scheduler = self.warps / self.a.schedulers
        inner = queue(busy / max(1.0, per_scheduler), self.inner_wait, max(1, round(per_scheduler * groups)))
        service = busy / max(inner, 1e-9)
        wait = self.barriers + (max(0.0, self.latency - busy * groups) if self.ahead else self.latency)
        if self.mix["barrier"]:
            return service / max(queue(service, wait, groups), 1e-9)
        # Without barriers each warp waits for itself.
        return service / max(queue(service / self.warps, wait, groups * self.warps), 1e-9)

    def core_seconds(self):
        most, clocks = math.ceil(self.groups / self.device.cores), 0.0
        rounds, rest = divmod(most, self.resident)
        # A group begins with loads and ends with stores. Where it is long, those of a round come together; short ones
        # follow each other, so that only the first and the last of a core are seen.
        ends = 2 * self.a.global_latency
        for now, times in ((self.resident, rounds), (rest, 1 if rest else 0)):
            if not times:
                continue
            one = now * (self.slices * self.clocks(now) + self.outside / min(now, 2))
            clocks += times * (one + (ends if self.trips.chain else 0))
        return (clocks + (0 if self.trips.chain else ends)) / self.device.ghz / 1e9

    def find_time(self):
        d, launch = self.device, self.launch
        once = moved(launch)
        # Weights come from memory; what launches hand to each other stays in a cache that has room for twice as much.
        weights = sum({x["name"]: x["bytes"] for x in launch["arguments"] if x["kind"] == "constant"}.values())
        weights = min(weights, once - launch["written_bytes"])
        rest = once - weights
        rate = d.memory * MEMORY_SHARE if rest * 2 > d.cache_mb * 1e6 else d.cache
        memory = weights / (d.memory * 1e9) / MEMORY_SHARE + rest / (rate * 1e9)
        cache = (self.groups * self.slices * self.loaded + launch["written_bytes"]) / (d.cache * 1e9)
        if self.tile is not None and launch["read_bytes"] > d.cache_mb * 1e6:
            # Operands that do not stay in the cache are read again by each round of groups.
            memory = max(memory, self.read_again() / (d.memory * 1e9) / MEMORY_SHARE)
        bounds = {"core": self.core, "memory": memory, "cache": cache}
        self.bound = max(bounds, key=bounds.get)
        self.time = bounds[self.bound] + d.launch_us * 1e-6
        if d.launch_us * 1e-6 > bounds[self.bound]:
            self.bound = "launch"
        self.bytes = once

    def read_again(self):
        wave = min(self.groups, self.device.cores * self.resident)
        side = max(1.0, math.sqrt(wave))
        waves = self.groups / wave
        return waves * side * (self.tile.rows + self.tile.columns) * depth_of(self.launch) * 4 + self.launch["written_bytes"]

    def share(self):
        """The share of the device's peak that the node's own operations reach."""
        return self.launch["operations"] / self.time / self.device.peak

    def hot_loop(self):
        t = self.trips
        return t.hot if t.hot else (0, len(self.kernel.code) - 1)

    def fma_share(self):
        """The share of multiply-adds among the instructions of the hot loop."""
        mix = self.kernel.mix(*self.hot_loop())
        return sum(mix[c] for c in isa.MULTIPLIES) / max(1, sum(mix.values()))

    def widths(self, cls):
        """Counts of the accesses of a class in the slice by bytes per lane: {16: 8, 4: 2}."""
        found = collections.Counter()
        for c, n in self.kernel.code[self.first:self.last + 1]:
            if c == cls:
                found[round(n)] += 1
        return dict(sorted(found.items(), reverse=True))
