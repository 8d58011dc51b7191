// What the timeline draws, without drawing it: rows of callers and streams, bundles, and the shown span of time.
(function (acs) {
    "use strict";
    const {C, opStart, opEnd, ran} = acs.model;

    const CALLER_ROW = 20, HEAD_ROW = 18, MOST_CALLERS = 12, SHORTEST_VIEW_NS = 200;
    const FEW_OPS = 0.1, MANY_LANES = 8, LEAST_JOINED = 3; // streams with few ops share rows
    const OPS_AROUND = 20,
        ALIKE_AROUND = 3; // at least so many ops, and so many of its kind, around an op that is shown

    const rowHeight = rows => rows <= 20 ? 20 : rows <= 40 ? 15 : rows <= 80 ? 11 : 8;

    // Rows of callers and of (device, slot, lane), each with its ops in the order of their begin, and its place from
    // above.
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
        const rows = [], sorted = joinSmall(run, [...lanes.values()]).sort((a, b) => a.device - b.device ||
            slotOrder(a) - slotOrder(b) || a.lane - b.lane);
        let y = 0, device = null;
        const add = row => {
            row.y = y;
            y += row.height;
            rows.push(row);
        };
        if (run.path.length) {
            add({head: "What the end of the run waited for", height: HEAD_ROW});
            add({path: [...run.path].filter(part => part[2] > part[1]).sort((a, b) => a[1] - b[1]), name: "the path",
                height: CALLER_ROW});
        }
        const threads = [...callers.keys()].sort((a, b) => a - b).slice(0, MOST_CALLERS);
        if (threads.length)
            add({head: callers.size > MOST_CALLERS ? "Callers (" + MOST_CALLERS + " of " + callers.size + ")"
                : "Callers",
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
            lane.name = lane.joined || (lane.lane > 0 ? "" : lane.slot < 0 ? "on the host" : "stream " + lane.slot);
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

    // The same lanes, but streams with few ops share as few rows as their ops need, below the others of their device.
    function joinSmall(run, lanes) {
        const most = lanes.reduce((a, lane) => Math.max(a, lane.ops.length), 0);
        const isSmall = lane => lane.slot >= 0 && lane.ops.length <= FEW_OPS * most &&
            lane.ops.every(place => run.ops[place][C.bundle] < 0);
        const small = lanes.length > MANY_LANES ? lanes.filter(isSmall) : [];
        const joined = [], left = [];
        for (const device of new Set(small.map(lane => lane.device))) {
            const own = small.filter(lane => lane.device === device);
            if (own.length < LEAST_JOINED)
                continue;
            left.push(...own);
            joined.push(...packed(run, own.flatMap(lane => lane.ops)).map((ops, at) => ({device, slot: 1e8, lane: at,
                ops,
                joined: at ? "" : own.length + " other streams"})));
        }
        return lanes.filter(lane => !left.includes(lane)).concat(joined);
    }
    // Ops in as few rows as they need so that none overlap.
    function packed(run, places) {
        const rows = [];
        for (const place of places.sort((a, b) => run.ops[a][C.began] - run.ops[b][C.began])) {
            const op = run.ops[place], row = rows.find(one => one.end <= op[C.began]) || {ops: [], end: 0};
            if (!row.ops.length)
                rows.push(row);
            row.ops.push(place);
            row.end = op[C.ended];
        }
        return rows.map(row => row.ops);
    }

    // What a caller did: launches as ticks, waits and calls for memory as blocks.
    function callerRow(run, thread) {
        const launches = run.ops.filter(op => op[C.thread] === thread && op[C.entered] > 0).map(op => op[C.entered]);
        return {caller: thread, name: "thread " + thread, height: CALLER_ROW,
            launches: Float64Array.from(launches).sort(),
            blocks: run.waits.filter(wait => wait[0] === thread).map(wait => ({from: wait[2], to: wait[3],
                type: wait[1],
                label: wait[5]}))
                .concat(run.memory.filter(event => event[8] === thread)
                    .map(event => ({from: event[0], to: event[1], type: event[2] ? "free" : "malloc", bytes: event[3],
                        at: event[6] ? run.short(event[6]) + ":" + event[7] : ""})))
                .sort((a, b) => a.from - b.from)};
    }

    // From when to when an op waited and ran. `upstream`: what it waited for; `kind`: of the finding that it shows.
    function waitOf(run, op, upstream, kind) {
        const wait = kind === "host wait" && run.waits.find(one => one[0] === op[C.thread] && one[3] >= opEnd(op));
        const known = [opStart(op), op[C.began], opEnd(op)].filter(at => at > 0), began = op[C.began] ||
            Math.max(...known, 0);
        if (wait)
            return [Math.min(began, wait[2]), wait[3]];
        if (kind === "window" || run.reasons[op[C.reason]] === "window")
            return [opStart(op), opEnd(op)];
        if (upstream && upstream[C.began] && kind !== "streams" && kind !== "issue")
            return [Math.min(upstream[C.began], began), opEnd(op)];
        return [Math.min(op[C.ready] || began, began), opEnd(op)];
    }
    // The span that shows the whole wait of the first of these ops, and enough around it to see what recurs.
    function spanToShow(run, places, kind) {
        const op = run.ops[places[0]], upstream = run.ops[places[1]] || run.ops[op[C.waitedFor]];
        const [first, last] = waitOf(run, op, upstream, kind), centre = (first + last) / 2;
        const isEnough = half => {
            const there = run.ops.filter(one => ran(one) && one[C.ended] > centre - half && one[C.began] < centre +
                half);
            return there.length >= OPS_AROUND &&
                there.filter(one => one[C.label] === op[C.label]).length >= ALIKE_AROUND;
        };
        let half = Math.max(0.65 * (last - first), SHORTEST_VIEW_NS);
        while (half < run.span && !isEnough(half))
            half *= 1.3;
        return [centre - half, centre + half];
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

    acs.rows = {layRows, makeView, spanToShow};
})(window.acsReport = window.acsReport || {});
