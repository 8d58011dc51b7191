// What the timeline draws, without drawing it: rows of callers and streams, bundles, curves over time, and the shown span of time.
(function (acs) {
    "use strict";
    const {C, partOfGpu, ran} = acs.model;

    const CALLER_ROW = 20, HEAD_ROW = 18, MOST_CALLERS = 12, SHORTEST_VIEW_NS = 200;

    const rowHeight = rows => rows <= 20 ? 20 : rows <= 40 ? 15 : rows <= 80 ? 11 : 8;

    // Rows of callers and of (device, slot, lane), each with its ops in the order of their begin, and its place from above.
    function layRows(run) {
        const lanes = new Map(), callers = new Map();
        run.ops.forEach((op, place) => {
            callers.set(op[C.thread], true);
            if (!ran(op))
                return;
            const key = op[C.device] + "/" + op[C.slot] + "/" + op[C.lane];
            if (!lanes.has(key))
                lanes.set(key, {device: op[C.device], slot: op[C.slot], lane: op[C.lane], ops: []});
            lanes.get(key).ops.push(place);
        });
        for (const wait of run.waits)
            callers.set(wait[0], true);
        for (const event of run.memory)
            callers.set(event[8], true);
        const rows = [], sorted = [...lanes.values()].sort((a, b) => a.device - b.device || slotOrder(a) - slotOrder(b) ||
            a.lane - b.lane);
        let y = 0, device = null;
        const add = row => {
            row.y = y;
            y += row.height;
            rows.push(row);
        };
        if (run.path.length) {
            add({head: "Why it is not done sooner", height: HEAD_ROW});
            add({path: [...run.path].filter(part => part[2] > part[1]).sort((a, b) => a[1] - b[1]), name: "the path",
                height: CALLER_ROW});
        }
        const threads = [...callers.keys()].sort((a, b) => a - b).slice(0, MOST_CALLERS);
        if (threads.length)
            add({head: callers.size > MOST_CALLERS ? "Callers (" + MOST_CALLERS + " of " + callers.size + ")" : "Callers",
                height: HEAD_ROW});
        for (const thread of threads)
            add(callerRow(run, thread));
        const height = rowHeight(sorted.length), named = new Map();
        for (const lane of sorted)
            named.set(lane.device + "/" + lane.slot, (named.get(lane.device + "/" + lane.slot) || 0) + height);
        for (const lane of sorted) {
            if (lane.device !== device)
                add({head: run.backend === "host" ? "CPU threads" : "GPU " + lane.device, height: HEAD_ROW});
            device = lane.device;
            lane.ops.sort((a, b) => run.ops[a][C.began] - run.ops[b][C.began]);
            lane.began = Float64Array.from(lane.ops, place => run.ops[place][C.began]);
            lane.name = lane.lane > 0 ? "" : lane.slot < 0 ? "on the host" : "stream " + lane.slot;
            lane.height = height;
            lane.fits = named.get(lane.device + "/" + lane.slot) >= 11;
            add(lane);
        }
        return {rows, height: y + 4, lanes: sorted.length, bundles: layBundles(run, sorted)};
    }
    // Where bundles stand: from their first begin to their last end, over the lanes of their ops. By their begin.
    function layBundles(run, lanes) {
        const found = new Map();
        for (const lane of lanes)
            for (const place of lane.ops) {
                const op = run.ops[place], key = op[C.bundle];
                if (key < 0)
                    continue;
                const at = found.get(key) || {from: Infinity, to: 0, top: lane.y, bottom: 0, ops: 0, bundle: key};
                at.from = Math.min(at.from, op[C.began]);
                at.to = Math.max(at.to, op[C.ended]);
                at.top = Math.min(at.top, lane.y);
                at.bottom = Math.max(at.bottom, lane.y + lane.height);
                at.ops++;
                found.set(key, at);
            }
        return [...found.values()].filter(one => one.ops > 1).sort((a, b) => a.from - b.from);
    }
    const slotOrder = lane => lane.slot < 0 ? 1e9 : lane.slot;

    // What a caller did: launches as ticks, waits and calls for memory as blocks.
    function callerRow(run, thread) {
        const launches = run.ops.filter(op => op[C.thread] === thread && op[C.entered] > 0).map(op => op[C.entered]);
        return {caller: thread, name: "thread " + thread, height: CALLER_ROW,
            launches: Float64Array.from(launches).sort(),
            blocks: run.waits.filter(wait => wait[0] === thread).map(wait => ({from: wait[2], to: wait[3], type: wait[1],
                label: wait[5]}))
                .concat(run.memory.filter(event => event[8] === thread)
                    .map(event => ({from: event[0], to: event[1], type: event[2] ? "free" : "malloc", bytes: event[3],
                        at: event[6] ? run.short(event[6]) + ":" + event[7] : ""})))
                .sort((a, b) => a.from - b.from)};
    }

    // First place in a sorted array whose value is above.
    function above(sorted, value) {
        let low = 0, high = sorted.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (sorted[middle] <= value)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    // A sum over the ops that run, as steps: {t, values}. `weigh` says what an op adds.
    function sumOfRunning(run, weigh) {
        const changes = [], made = {t: [], values: []};
        for (const op of run.ops)
            if (ran(op) && weigh(op) > 0)
                changes.push([op[C.began], weigh(op)], [op[C.ended], -weigh(op)]);
        changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
        let sum = 0;
        for (const [at, by] of changes) {
            sum = Math.max(0, sum + by);
            made.t.push(at);
            made.values.push(sum);
        }
        return made;
    }
    // Counters of the recording, or of the ops where it has none; and how full the GPUs were, in percent.
    function countersOf(run) {
        const made = Object.assign({}, run.counters);
        if (!made.t.length) {
            const running = sumOfRunning(run, () => 1);
            Object.assign(made, {t: running.t, running: running.values, ready: [], window: []});
        }
        const gpu = sumOfRunning(run, op => 100 * partOfGpu(run, op) / Math.max(1, run.devices.length));
        return Object.assign(made, {gpuT: gpu.t, gpu: gpu.values.map(value => Math.min(100, value))});
    }

    // Mean and most of a stepped curve in each pixel of [from, to).
    function perPixel(t, values, from, to, pixels) {
        const mean = new Float64Array(pixels), most = new Float64Array(pixels);
        const step = (to - from) / pixels;
        let at = Math.max(0, above(t, from) - 1);
        for (let pixel = 0; pixel < pixels; pixel++) {
            const begin = from + pixel * step, end = begin + step;
            let sum = 0;
            while (at < t.length && t[at] < end) {
                const last = at + 1 < t.length ? t[at + 1] : Infinity;
                const part = Math.min(last, end) - Math.max(t[at], begin);
                if (part > 0) {
                    sum += part * values[at];
                    most[pixel] = Math.max(most[pixel], values[at]);
                }
                if (last > end)
                    break;
                at++;
            }
            mean[pixel] = sum / step;
        }
        return {mean, most};
    }

    // The shown span of time. Tells its followers of each change.
    function makeView(span) {
        const view = {from: 0, to: span, span, followers: []};
        view.set = (from, to) => {
            const length = Math.min(span, Math.max(SHORTEST_VIEW_NS, to - from));
            view.from = Math.min(Math.max(0, from + (to - from - length) / 2), span - length);
            view.to = view.from + length;
            view.followers.forEach(follow => follow());
        };
        view.zoom = (factor, centre) => view.set(centre - (centre - view.from) * factor, centre +
            (view.to - centre) * factor);
        view.pan = by => view.set(view.from + by, view.to + by);
        view.x = (at, pixels) => (at - view.from) / (view.to - view.from) * pixels;
        view.time = (x, pixels) => view.from + x / pixels * (view.to - view.from);
        return view;
    }

    acs.rows = {layRows, above, countersOf, perPixel, makeView, SHORTEST_VIEW_NS};
})(window.acsReport = window.acsReport || {});
