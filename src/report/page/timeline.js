// The timeline: which op ran where and when, callers above, and how wide it was. Owns the view (the span of time that is shown),
// the selected op and what is highlighted. Others ask it to show ops.
(function (acs) {
    "use strict";
    const {C, nameOf, placeOf, opName, time, width, percent, plural, partOfGpu, phases, conflictOf, chain, opStart, opEnd, ran, idleSpans} = acs.model;
    const {el, colour, kernelColours, cut, sharp, ticks, onceAFrame} = acs.draw;

    const GUTTER = 118, RIGHT = 14, AXIS = 22, OVERVIEW = 30, STRIP = 46, CALLER_ROW = 20, HEAD_ROW = 18;
    const MOST_CALLERS = 12, CHAIN_SHOWN = 200, CHAIN_LISTED = 12, SHORTEST_VIEW_NS = 200, CLICK_PIXELS = 4;
    const WAIT_NAMES = ["waits for one op", "waits for all ops", "waits for room in the FIFO"];

    // ------------------------------------------------------------------------------------------------------------ rows

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
        const rows = [], sorted = [...lanes.values()].sort((a, b) => a.device - b.device || slotOrder(a) - slotOrder(b) || a.lane - b.lane);
        let y = 0, device = null;
        const add = row => {
            row.y = y;
            y += row.height;
            rows.push(row);
        };
        if (run.path.length) {
            add({head: "Why it is not done sooner", height: HEAD_ROW});
            add({path: [...run.path].filter(part => part[2] > part[1]).sort((a, b) => a[1] - b[1]), name: "the path", height: CALLER_ROW});
        }
        const threads = [...callers.keys()].sort((a, b) => a - b).slice(0, MOST_CALLERS);
        if (threads.length)
            add({head: callers.size > MOST_CALLERS ? "Callers (" + MOST_CALLERS + " of " + callers.size + ")" : "Callers", height: HEAD_ROW});
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
            blocks: run.waits.filter(wait => wait[0] === thread).map(wait => ({from: wait[2], to: wait[3], type: wait[1], label: wait[5]}))
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

    // Counters from the ops themselves, where the recording has none.
    function countersOf(run) {
        if (run.counters.t.length)
            return run.counters;
        const changes = [];
        for (const op of run.ops) {
            if (ran(op))
                changes.push([op[C.began], 0, 1], [op[C.ended], 0, -1]);
        }
        changes.sort((a, b) => a[0] - b[0]);
        const made = {t: [], ready: [], running: [], window: []};
        let running = 0;
        for (const [at, , by] of changes) {
            running += by;
            made.t.push(at);
            made.running.push(running);
        }
        return made;
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

    // ------------------------------------------------------------------------------------------------------------ view

    // The shown span of time. Tells its followers of each change.
    function makeView(span) {
        const view = {from: 0, to: span, span, followers: []};
        view.set = (from, to) => {
            const length = Math.min(span, Math.max(SHORTEST_VIEW_NS, to - from));
            view.from = Math.min(Math.max(0, from + (to - from - length) / 2), span - length);
            view.to = view.from + length;
            view.followers.forEach(follow => follow());
        };
        view.zoom = (factor, centre) => view.set(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
        view.pan = by => view.set(view.from + by, view.to + by);
        view.x = (at, pixels) => (at - view.from) / (view.to - view.from) * pixels;
        view.time = (x, pixels) => view.from + x / pixels * (view.to - view.from);
        return view;
    }

    // -------------------------------------------------------------------------------------------------- drawing: widths

    // Overview with the shown part, axis, and strips: running, ready, in the window.
    function drawWidths(context, w, run, view, counters) {
        const pixels = Math.max(10, Math.floor(w - GUTTER - RIGHT));
        const text = colour("text"), faint = colour("faint"), line = colour("line");
        context.font = "12px system-ui, sans-serif";
        context.textBaseline = "middle";
        drawOverview(context, pixels, run, view, counters, {text, faint, line});
        drawAxis(context, pixels, view, {faint, line}, OVERVIEW, heightOfWidths(counters));
        stripsOf(run, counters).forEach((strip, place) =>
            drawStrip(context, pixels, view, counters, strip, OVERVIEW + AXIS + place * (STRIP + 6), {text, faint, line}));
    }
    function stripsOf(run, counters) {
        const all = [{name: "running", values: counters.running, colour: "running", aim: run.summary.width_possible,
            words: "possible: " + width(run.summary.width_possible)},
        {name: "ready, waiting", values: counters.ready, colour: "ready"},
        {name: "in the window", values: counters.window, colour: "window", aim: Number(run.options.window) || 0,
            words: "limit: " + run.options.window}];
        return all.filter(strip => strip.values && strip.values.length);
    }
    const heightOfWidths = counters => OVERVIEW + AXIS +
        [counters.running, counters.ready, counters.window].filter(values => values && values.length).length * (STRIP + 6);

    function drawOverview(context, pixels, run, view, counters, theme) {
        const {mean} = perPixel(counters.t, counters.running, 0, view.span, pixels);
        const top = Math.max(...mean, 1e-9);
        context.fillStyle = theme.faint;
        context.fillText("the whole run", 4, OVERVIEW / 2);
        context.fillStyle = colour("running");
        for (let x = 0; x < pixels; x++)
            context.fillRect(GUTTER + x, OVERVIEW - 3 - (OVERVIEW - 6) * mean[x] / top, 1, (OVERVIEW - 6) * mean[x] / top);
        const left = GUTTER + view.from / view.span * pixels, right = GUTTER + view.to / view.span * pixels;
        context.fillStyle = colour("veil");
        context.fillRect(GUTTER, 0, left - GUTTER, OVERVIEW);
        context.fillRect(right, 0, GUTTER + pixels - right, OVERVIEW);
        context.strokeStyle = colour("accent");
        context.lineWidth = 1.5;
        context.strokeRect(left + 0.5, 1, Math.max(3, right - left - 1), OVERVIEW - 2);
    }
    function drawAxis(context, pixels, view, theme, y, bottom) {
        context.textAlign = "center";
        context.lineWidth = 1;
        for (const at of ticks(view.from, view.to, pixels / 110)) {
            const x = GUTTER + view.x(at, pixels);
            context.fillStyle = theme.line;
            context.fillRect(Math.round(x), y + AXIS - 4, 1, bottom - y - AXIS + 4);
            context.fillStyle = theme.faint;
            context.fillText(at === 0 ? "0" : time(at), Math.min(x, GUTTER + pixels - 16), y + AXIS / 2);
        }
        context.textAlign = "left";
    }
    function drawStrip(context, pixels, view, counters, strip, y, theme) {
        const {mean, most} = perPixel(counters.t, strip.values, view.from, view.to, pixels);
        const highest = Math.max(1, strip.values.reduce((a, b) => Math.max(a, b), 0));
        const aim = strip.aim || 0;
        const top = 1.1 * Math.max(highest, aim <= 8 * highest ? aim : 0);
        const height = value => STRIP * Math.min(1, value / top);
        context.fillStyle = colour("strip");
        context.fillRect(GUTTER, y, pixels, STRIP);
        for (const [values, alpha] of [[most, 0.35], [mean, 1]]) {
            context.globalAlpha = alpha;
            context.fillStyle = colour(strip.colour);
            for (let x = 0; x < pixels; x++)
                if (values[x] > 0)
                    context.fillRect(GUTTER + x, y + STRIP - height(values[x]), 1, height(values[x]));
        }
        context.globalAlpha = 1;
        context.fillStyle = theme.text;
        context.fillText(strip.name, 4, y + (aim > 0 ? 8 : 15));
        context.fillStyle = theme.faint;
        context.fillText("at most " + acs.model.count(highest), 4, y + (aim > 0 ? 23 : 31));
        if (aim > 0)
            drawAim(context, pixels, strip, y, aim <= top ? y + STRIP - height(aim) : -1);
    }
    // A dashed line at a value that the curve could reach; its words stand at the left. Below 0: it is above the strip.
    function drawAim(context, pixels, strip, y, at) {
        context.strokeStyle = context.fillStyle = colour("text");
        context.fillText((at < 0 ? "" : "- - ") + strip.words + (at < 0 ? " \u2191" : ""), 4, y + 38);
        if (at < 0)
            return;
        context.setLineDash([5, 4]);
        context.beginPath();
        context.moveTo(GUTTER, Math.round(at) + 0.5);
        context.lineTo(GUTTER + pixels, Math.round(at) + 0.5);
        context.stroke();
        context.setLineDash([]);
    }

    // ---------------------------------------------------------------------------------------------------- drawing: rows

    function drawRows(context, w, state) {
        const pixels = Math.max(10, Math.floor(w - GUTTER - RIGHT));
        context.font = "11px system-ui, sans-serif";
        context.textBaseline = "middle";
        const theme = {text: colour("text"), faint: colour("faint"), line: colour("line"), strip: colour("strip"), back: colour("back"),
            wait: colour("wait"), memory: colour("memory"), idle: colour("idle"), accent: colour("accent"), inside: colour("inside"), bundle: colour("bundle")};
        const paints = new Map();
        const paint = name => {
            if (!paints.has(name))
                paints.set(name, colour(name));
            return paints.get(name);
        };
        theme.kernel = label => paint(state.colours.name(label));
        theme.path = name => paint(acs.model.pathColour(name));
        drawBundles(context, pixels, state, theme);
        for (const row of state.rows) {
            if (row.head)
                drawHead(context, row, pixels, theme);
            else if (row.path)
                drawPath(context, row, pixels, state, theme);
            else if (row.caller !== undefined)
                drawCaller(context, row, pixels, state, theme);
            else
                drawLane(context, row, pixels, state, theme);
        }
        drawIdle(context, pixels, state, theme);
        drawSelection(context, pixels, state, theme);
    }
    // Lanes as strips, and on them a frame around the ops of each bundle that is wide enough.
    function drawBundles(context, pixels, state, theme) {
        context.fillStyle = theme.strip;
        for (const row of state.rows)
            if (row.ops)
                context.fillRect(GUTTER, row.y + 1, pixels, row.height - 2);
        context.lineWidth = 1;
        for (const one of state.bundles) {
            const left = Math.max(-2, state.view.x(one.from, pixels)), right = Math.min(pixels + 2, state.view.x(one.to, pixels));
            if (right - left < 4)
                continue;
            context.fillStyle = theme.bundle;
            context.fillRect(GUTTER + left - 1, one.top + 0.5, right - left + 2, one.bottom - one.top - 1);
            context.strokeStyle = theme.faint;
            context.strokeRect(GUTTER + Math.round(left) - 1.5, one.top + 0.5, Math.round(right - left) + 2, one.bottom - one.top - 1);
        }
        context.clearRect(0, 0, GUTTER - 3, state.height);
        context.clearRect(GUTTER + pixels + 3, 0, RIGHT, state.height);
    }
    function drawHead(context, row, pixels, theme) {
        context.fillStyle = theme.faint;
        context.font = "600 11px system-ui, sans-serif";
        context.fillText(row.head, 4, row.y + row.height / 2 + 2);
        context.font = "11px system-ui, sans-serif";
        context.fillStyle = theme.line;
        context.fillRect(GUTTER, row.y + row.height - 3, pixels, 1);
    }
    function drawName(context, row, theme) {
        if (!row.name || row.height < 11 && !row.fits && row.slot % 8 !== 0)
            return;
        context.fillStyle = theme.text;
        context.fillText(row.name, 12, row.y + Math.max(row.height, 11) / 2);
    }
    function drawCaller(context, row, pixels, state, theme) {
        const {view} = state;
        const y = row.y + 2, height = row.height - 4;
        drawName(context, row, theme);
        context.fillStyle = theme.strip;
        context.fillRect(GUTTER, y, pixels, height);
        context.fillStyle = theme.accent;
        let drawn = -1;
        for (let at = above(row.launches, view.from - 1); at < row.launches.length && row.launches[at] <= view.to; at++) {
            const x = Math.round(view.x(row.launches[at], pixels));
            if (x !== drawn)
                context.fillRect(GUTTER + x, y + height / 2, 1, height / 2);
            drawn = x;
        }
        for (const block of row.blocks) {
            if (block.to < view.from || block.from > view.to)
                continue;
            const left = Math.max(0, view.x(block.from, pixels)), right = Math.min(pixels, view.x(block.to, pixels));
            const waits = typeof block.type === "number";
            context.fillStyle = waits ? theme.wait : theme.memory;
            context.fillRect(GUTTER + left, y, Math.max(1, right - left), height);
            context.fillStyle = theme.inside;
            context.fillText(cut(context, waits ? WAIT_NAMES[block.type] || "waits" : block.type, right - left - 8), GUTTER + left + 4,
                row.y + row.height / 2);
        }
    }

    // The path in the colours of its reasons. In a pixel the longest part counts.
    function drawPath(context, row, pixels, state, theme) {
        const {run, view} = state, height = row.height - 4, longest = new Float64Array(pixels), reasons = new Int16Array(pixels).fill(-1);
        drawName(context, row, theme);
        for (const [, from, to, reason] of row.path) {
            const left = Math.max(0, view.x(from, pixels)), right = Math.min(pixels, view.x(to, pixels));
            for (let x = Math.floor(left); x < right && x < pixels; x++) {
                const part = Math.min(right, x + 1) - Math.max(left, x);
                if (part > longest[x]) {
                    longest[x] = part;
                    reasons[x] = reason;
                }
            }
        }
        for (let x = 0; x < pixels; x++)
            if (reasons[x] >= 0) {
                context.fillStyle = theme.path(run.path_reasons[reasons[x]]);
                context.fillRect(GUTTER + x, row.y + 2, 1, height);
            }
        context.fillStyle = theme.inside;
        for (const [, from, to, reason] of row.path) {
            const left = Math.max(0, view.x(from, pixels)), right = Math.min(pixels, view.x(to, pixels));
            if (right - left > 40)
                context.fillText(cut(context, acs.model.pathWords(run.path_reasons[reason])[0], right - left - 8), GUTTER + left + 4, row.y + row.height / 2);
        }
    }

    // Ops of a lane. Those below a pixel are drawn together: the colour of the longest, as dark as they cover the pixel.
    function drawLane(context, row, pixels, state, theme) {
        const {run, view} = state;
        const gap = row.height >= 15 ? 3 : row.height >= 11 ? 2 : 1;
        const y = row.y + gap, height = row.height - 2 * gap + (row.height < 11 ? 1 : 0);
        drawName(context, row, theme);
        const scale = pixels / (view.to - view.from);
        let pixel = -1, covered = 0, longest = 0, paint = null, dim = false;
        const flush = () => {
            if (pixel >= 0 && paint) {
                context.globalAlpha = (0.3 + 0.7 * Math.min(1, covered)) * (dim ? 0.15 : 1);
                context.fillStyle = paint;
                context.fillRect(GUTTER + pixel, y, 1, height);
                context.globalAlpha = 1;
            }
            covered = longest = 0;
            paint = null;
        };
        for (let at = Math.max(0, above(row.began, view.from) - 1); at < row.ops.length; at++) {
            const op = run.ops[row.ops[at]];
            if (op[C.began] > view.to)
                break;
            const left = (op[C.began] - view.from) * scale, right = (op[C.ended] - view.from) * scale;
            if (right < 0)
                continue;
            const length = right - left;
            if (length < 1.5) {
                const x = Math.max(0, Math.min(pixels - 1, Math.floor(left)));
                if (x !== pixel) {
                    flush();
                    pixel = x;
                }
                covered += Math.max(length, 0.1);
                if (length >= longest) {
                    longest = length;
                    paint = theme.kernel(op[C.label]);
                    dim = isDim(state, row.ops[at], op);
                }
                continue;
            }
            drawOp(context, op, Math.max(0, left), Math.min(pixels, right), y, height, isDim(state, row.ops[at], op), state, theme);
        }
        flush();
    }
    function drawOp(context, op, left, right, y, height, dim, state, theme) {
        context.globalAlpha = dim ? 0.15 : 1;
        context.fillStyle = theme.kernel(op[C.label]);
        const gap = right - left > 4 ? 0.75 : 0;
        context.fillRect(GUTTER + left, y, right - left - gap, height);
        if (op[C.status] !== 0) {
            context.fillStyle = theme.text;
            context.fillRect(GUTTER + left, y, right - left - gap, 2);
        }
        if (height >= 9 && right - left > 26) {
            context.fillStyle = theme.inside;
            context.fillText(cut(context, nameOf(state.run, op[C.label]), right - left - 8), GUTTER + left + 4, y + height / 2 + 0.5);
        }
        context.globalAlpha = 1;
    }
    function isDim(state, place, op) {
        if (state.marked.size && !state.marked.has(place) && state.dimOthers)
            return true;
        if (state.critical && !op[C.critical])
            return true;
        return state.label >= 0 && op[C.label] !== state.label;
    }

    // Time in which nothing ran, as a veil over the lanes.
    function drawIdle(context, pixels, state, theme) {
        const first = state.rows.find(row => row.ops);
        if (!first)
            return;
        context.fillStyle = theme.idle;
        let end = -1;
        for (const [from, to] of state.idle) {
            if (to < state.view.from || from > state.view.to)
                continue;
            const left = Math.max(0, state.view.x(from, pixels), end), right = Math.min(pixels, state.view.x(to, pixels));
            if (right - left >= 1.5)
                context.fillRect(GUTTER + left, first.y, right - left, state.height - first.y);
            end = right;
        }
    }

    // The selected op and the ops it waited for, with lines; the places of a finding with frames.
    function drawSelection(context, pixels, state, theme) {
        const {run, view} = state;
        const box = place => {
            const op = run.ops[place], row = state.rowOf.get(place);
            if (!op || !row)
                return null;
            return {left: GUTTER + Math.min(pixels, Math.max(0, view.x(op[C.began], pixels))),
                right: GUTTER + Math.min(pixels, Math.max(0, view.x(op[C.ended], pixels))), y: row.y, height: row.height};
        };
        const frame = (at, thick) => {
            context.lineWidth = thick;
            context.strokeRect(at.left - 0.5, at.y + 0.5, Math.max(3, at.right - at.left), at.height - 1);
        };
        context.strokeStyle = theme.text;
        for (const place of state.marked) {
            const at = box(place);
            if (at)
                frame(at, 1.5);
        }
        if (state.selected < 0)
            return;
        const places = [state.selected, ...chain(run, state.selected, CHAIN_SHOWN)];
        context.strokeStyle = theme.text;
        context.lineWidth = 1.5;
        for (let at = 0; at + 1 < places.length; at++) {
            const to = box(places[at]), from = box(places[at + 1]);
            if (to && from)
                arrow(context, from.right, from.y + from.height / 2, to.left, to.y + to.height / 2);
        }
        context.strokeStyle = theme.accent;
        const own = box(state.selected);
        if (own) {
            frame(own, 3);
            drawPhases(context, pixels, state, own);
        }
    }
    function arrow(context, x0, y0, x1, y1) {
        const bend = Math.max(8, Math.min(40, Math.abs(x1 - x0) / 2));
        context.beginPath();
        context.moveTo(x0, y0);
        context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
        context.stroke();
        context.beginPath();
        context.moveTo(x1 - 5, y1 - 3.5);
        context.lineTo(x1, y1);
        context.lineTo(x1 - 5, y1 + 3.5);
        context.stroke();
    }
    // What the selected op did before it ran, as a thin line in its row.
    function drawPhases(context, pixels, state, own) {
        phases(state.run, state.run.ops[state.selected]).forEach((phase, place) => {
            if (phase.ran)
                return;
            const left = Math.max(0, state.view.x(phase.from, pixels)), right = Math.min(pixels, state.view.x(phase.to, pixels));
            context.fillStyle = colour(phaseColour(phase));
            if (right > left)
                context.fillRect(GUTTER + left, own.y + own.height - 3, right - left, 3);
        });
    }
    const phaseColour = phase => phase.ran ? "running" : phase.name === "in the FIFO" ? "r-window" : phase.name.startsWith("waited") ? "r-dependence"
        : phase.name.startsWith("ready") ? "r-issue" : "r-device";

    // --------------------------------------------------------------------------------------------------------- details

    // The selected op: what it is, its phases, and what it waited for.
    function details(state, select) {
        const {run} = state, op = run.ops[state.selected];
        if (!op)
            return el("p", {class: "note"}, "Click an op to see what it waited for.");
        const start = opStart(op), length = Math.max(1, opEnd(op) - start), parts = phases(run, op);
        return el("div", {class: "details"},
            el("h3", null, opName(run, op), " ", el("span", {class: "note"}, placeOf(run, op[C.label]))),
            el("p", null, factsOf(run, op)),
            el("div", {class: "phases", role: "img", "aria-label": parts.map(part => part.name + " " + time(part.to - part.from)).join(", ")},
                parts.map(part => el("div", {style: "left:" + 100 * (part.from - start) / length + "%;width:" +
                    100 * (part.to - part.from) / length + "%;background:var(--" + phaseColour(part) + ")"}))),
            el("ol", {class: "phase-list"}, parts.map(part => el("li", null,
                el("span", {class: "key", style: "background:var(--" + phaseColour(part) + ")"}), el("b", null, time(part.to - part.from)), " ",
                part.name, part.name.startsWith("waited") && conflictOf(run, op) ? " (" + conflictOf(run, op) + ")" : ""))),
            chainList(run, state.selected, select));
    }
    function factsOf(run, op) {
        const facts = [run.kinds[op[C.kind]] || "op"];
        if (op[C.blocks])
            facts.push(plural(op[C.blocks], "block") + " of " + plural(op[C.threads], "thread"));
        if (partOfGpu(run, op) > 0)
            facts.push("room for it: " + percent(partOfGpu(run, op)) + " of the GPU");
        if (op[C.bytes])
            facts.push(acs.model.bytes(op[C.bytes]));
        facts.push("issued by " + (run.methods[op[C.method]] || "unknown"));
        if (op[C.bundle] >= 0)
            facts.push("in bundle " + op[C.bundle]);
        facts.push("place " + op[C.level] + " in its chain");
        if (op[C.critical])
            facts.push("on the critical path");
        if (op[C.status] !== 0)
            facts.push("ended with status " + op[C.status]);
        return facts.join(", ") + ".";
    }
    function chainList(run, place, select) {
        const places = chain(run, place, CHAIN_SHOWN);
        if (!places.length)
            return el("p", {class: "note"}, "It waited for no other op.");
        const link = at => el("button", {type: "button", class: "link", onclick: () => select(at)}, opName(run, run.ops[at]));
        return el("div", null, el("p", null, "It waited for ", plural(places.length, "op"), ", one behind the other:"),
            el("ol", {class: "chain"}, places.slice(0, CHAIN_LISTED).map((at, step) => el("li", null, link(at), " ",
                el("span", {class: "note"}, conflictOf(run, run.ops[step ? places[step - 1] : place]))))),
            places.length > CHAIN_LISTED ? el("p", {class: "note"}, "and " + (places.length - CHAIN_LISTED) + " more.") : null);
    }

    // Words for the tooltip of an op, or of what a caller did.
    function hint(state, hit) {
        const {run} = state;
        if (hit.block && typeof hit.block.type === "number")
            return [WAIT_NAMES[hit.block.type] || "waits", time(hit.block.to - hit.block.from),
                hit.block.label >= 0 ? "behind " + nameOf(run, hit.block.label) + ", " + placeOf(run, hit.block.label) : ""].filter(Boolean);
        if (hit.block)
            return [hit.block.type + " of " + acs.model.bytes(hit.block.bytes), time(hit.block.to - hit.block.from), hit.block.at].filter(Boolean);
        if (hit.part) {
            const words = acs.model.pathWords(run.path_reasons[hit.part[3]]);
            return [words[0] + ", " + time(hit.part[2] - hit.part[1]), words[1], run.ops[hit.part[0]] ? opName(run, run.ops[hit.part[0]]) : ""].filter(Boolean);
        }
        const op = run.ops[hit.place];
        const waited = op[C.reasonNs] > 0 ? "waited longest for: " + acs.model.reasonWords(run.reasons[op[C.reason]])[0] + ", " + time(op[C.reasonNs]) : "";
        return [opName(run, op), "ran " + time(op[C.ended] - op[C.began]), waited, placeOf(run, op[C.label])].filter(Boolean);
    }

    // ------------------------------------------------------------------------------------------------------- the widget

    // The section of one run: {node, show(places), highlight(label), select(place), draw()}.
    function timeline(run) {
        const layout = layRows(run), counters = countersOf(run), view = makeView(run.span * 1.005), colours = kernelColours(run);
        const state = {run, view, colours, rows: layout.rows, bundles: layout.bundles, height: layout.height, rowOf: new Map(), idle: idleSpans(run), selected: -1,
            marked: new Set(), dimOthers: false, critical: false, label: -1};
        for (const row of layout.rows)
            (row.ops || []).forEach(place => state.rowOf.set(place, row));

        const widths = el("canvas", {class: "widths", "aria-label": widthsLabel(run), role: "img"});
        const rows = el("canvas", {class: "rows", tabindex: 0, role: "application", "aria-roledescription": "timeline",
            "aria-label": rowsLabel(run, layout)});
        const tip = el("div", {class: "tip", hidden: true});
        const panel = el("div", {class: "panel", "aria-live": "polite"});
        const scroller = el("div", {class: "scroller"}, rows);
        const legend = el("div", {class: "legend", role: "group", "aria-label": "Kernels: press to highlight"});
        const shown = el("span", {class: "note shown"});

        const draw = onceAFrame(() => {
            const w = widths.clientWidth;
            if (!w)
                return;
            drawWidths(sharp(widths, w, heightOfWidths(counters)), w, run, view, counters);
            drawRows(sharp(rows, w, layout.height), w, state);
            shown.textContent = "shown: " + time(view.from) + " to " + time(view.to);
        });
        view.followers.push(draw);

        function select(place, keepView) {
            state.selected = run.ops[place] ? place : -1;
            panel.replaceChildren(details(state, select));
            const op = run.ops[state.selected], row = state.rowOf.get(state.selected);
            if (op && !keepView && (opEnd(op) < view.from || opStart(op) > view.to || opEnd(op) - opStart(op) > view.to - view.from))
                fit([state.selected]);
            if (row && !keepView)
                scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, row.y + row.height - scroller.clientHeight + 10), Math.max(0, row.y - 30));
            draw();
        }
        // Zoom to ops, with room on both sides.
        function fit(places) {
            const ops = places.map(place => run.ops[place]).filter(Boolean);
            if (!ops.length)
                return;
            let from = Infinity, to = 0;
            for (const op of ops) {
                const upstream = run.ops[op[C.waitedFor]];
                from = Math.min(from, op[C.began] || opStart(op), upstream && upstream[C.began] ? upstream[C.began] : Infinity);
                to = Math.max(to, opEnd(op));
            }
            const room = Math.max(0.15 * (to - from), SHORTEST_VIEW_NS);
            view.set(from - room, to + room);
        }
        function show(places) {
            const known = places.filter(place => run.ops[place]);
            state.marked = new Set(known);
            if (known.length) {
                fit(known);
                select(known[0], true);
            }
            draw();
        }
        function highlight(label) {
            state.label = state.label === label ? -1 : label;
            for (const button of legend.querySelectorAll("button"))
                button.setAttribute("aria-pressed", String(Number(button.dataset.label) === state.label));
            draw();
        }
        const hitAt = event => hitOf(state, layout, rows, event);
        listen(state, rows, widths, {draw, select, hitAt, tip, fit, view, run});
        for (const label of colours.labels)
            legend.append(el("button", {type: "button", "aria-pressed": "false", "data-label": label, onclick: () => highlight(label)},
                el("span", {class: "key", style: "background:" + colours.css(label)}), nameOf(run, label)));
        if (colours.more)
            legend.append(el("span", {class: "note"}, el("span", {class: "key", style: "background:var(--k-other)"}), "others"));
        const button = (words, label, act) => el("button", {type: "button", class: "tool", "aria-label": label, title: label, onclick: act}, words);
        const critical = el("button", {type: "button", class: "tool critical", "aria-pressed": "false", onclick: () => {
            state.critical = !state.critical;
            critical.setAttribute("aria-pressed", String(state.critical));
            draw();
        }}, "Critical path");
        const tools = el("div", {class: "tools"},
            button("Zoom in", "Zoom in (+)", () => view.zoom(0.5, (view.from + view.to) / 2)),
            button("Zoom out", "Zoom out (-)", () => view.zoom(2, (view.from + view.to) / 2)),
            button("Whole run", "Show the whole run (0)", () => {
                state.marked = new Set();
                view.set(0, view.span);
            }), critical, shown);
        select(-1);
        const node = el("div", {class: "timeline"}, tools, legend, el("div", {class: "widths-box"}, widths),
            el("div", {class: "rows-box"}, scroller, tip), marksLegend(state), pathLegend(run), panel);
        new ResizeObserver(draw).observe(node);
        return {node, show, highlight, select, draw, view, state};
    }
    function widthsLabel(run) {
        return "Ops running, ready and in the window over time. Possible width " + width(run.summary.width_possible) + ", achieved " +
            width(run.summary.width_achieved) + ".";
    }
    function rowsLabel(run, layout) {
        return plural(run.ops.length, "op") + " on " + plural(layout.lanes, "row") + ". Plus and minus zoom, arrows move, n and p go to the next " +
            "and previous op, c goes to the op that the selected op waited for, 0 shows the whole run.";
    }
    function marksLegend(state) {
        const key = (name, words) => el("span", null, el("span", {class: "key", style: "background:var(--" + name + ")"}), words);
        return el("p", {class: "note marks"}, key("idle", "nothing ran"), key("wait", "the caller waits"), key("memory", "the caller allocates or frees"),
            key("accent", "the caller launches"),
            state.bundles.length ? key("bundle", "a bundle") : null, el("span", null, "Drag to move. Click the picture, then scroll to zoom. Keys: + - 0, arrows, n, p, c."));
    }

    function pathLegend(run) {
        const used = run.path_reasons.filter((name, at) => run.path_ns[at] > 0);
        return used.length ? el("p", {class: "note marks"}, el("b", null, "The path:"), used.map(name => el("span", {title: acs.model.pathWords(name)[1]},
            el("span", {class: "key", style: "background:var(--" + acs.model.pathColour(name) + ")"}), acs.model.pathWords(name)[0]))) : null;
    }

    // What is under the mouse: {place} of an op, {block} of a caller, {part} of the path, or null.
    function hitOf(state, layout, canvas, event) {
        const box = canvas.getBoundingClientRect(), pixels = Math.max(10, Math.floor(box.width - GUTTER - RIGHT));
        const x = event.clientX - box.left - GUTTER, y = event.clientY - box.top;
        const row = layout.rows.find(one => y >= one.y && y < one.y + one.height);
        if (!row || row.head || x < 0 || x > pixels)
            return null;
        const at = state.view.time(x, pixels), near = 3 * (state.view.to - state.view.from) / pixels;
        if (row.path) {
            const part = row.path.find(one => at >= one[1] - near && at <= one[2] + near);
            return part ? {part, place: part[0]} : null;
        }
        if (row.caller !== undefined) {
            const block = row.blocks.find(one => at >= one.from - near && at <= one.to + near);
            return block ? {block} : null;
        }
        let best = null, least = near;
        for (let place = Math.max(0, above(row.began, at) - 1); place < row.ops.length && row.began[place] <= at + near; place++) {
            const op = state.run.ops[row.ops[place]];
            const distance = Math.max(op[C.began] - at, at - op[C.ended], 0);
            if (distance <= least && (best === null || distance < least)) {
                best = row.ops[place];
                least = distance;
            }
        }
        return best === null ? null : {place: best};
    }

    // Mouse, wheel and keys.
    function listen(state, rows, widths, on) {
        const {view, run} = on;
        const pixelsOf = canvas => Math.max(10, Math.floor(canvas.clientWidth - GUTTER - RIGHT));
        let drag = null;
        const wheel = event => {
            const canvas = event.currentTarget, pixels = pixelsOf(canvas);
            const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
            if (!sideways && !event.ctrlKey && document.activeElement !== rows)
                return;
            event.preventDefault();
            const x = event.clientX - canvas.getBoundingClientRect().left - GUTTER;
            if (sideways)
                view.pan((event.deltaX || event.deltaY) * (view.to - view.from) / pixels);
            else
                view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), view.time(Math.max(0, Math.min(pixels, x)), pixels));
        };
        rows.addEventListener("wheel", wheel, {passive: false});
        widths.addEventListener("wheel", wheel, {passive: false});
        rows.addEventListener("pointerdown", event => {
            drag = {x: event.clientX, moved: false};
            rows.setPointerCapture(event.pointerId);
        });
        rows.addEventListener("pointermove", event => {
            if (drag) {
                const by = event.clientX - drag.x;
                if (drag.moved || Math.abs(by) > CLICK_PIXELS) {
                    drag.moved = true;
                    drag.x = event.clientX;
                    view.pan(-by * (view.to - view.from) / pixelsOf(rows));
                }
                return;
            }
            showTip(state, on.tip, rows, event, on.hitAt(event));
        });
        rows.addEventListener("pointerup", event => {
            const moved = drag && drag.moved, hit = on.hitAt(event);
            drag = null;
            if (!moved)
                on.select(hit && hit.place !== undefined ? hit.place : -1, true);
        });
        rows.addEventListener("pointerleave", () => {
            on.tip.hidden = true;
        });
        brush(widths, view, pixelsOf);
        rows.addEventListener("keydown", event => keys(state, on, event, run, view));
    }
    // Dragging over the widths shows that span: in the overview of the whole run, else of the shown part.
    function brush(widths, view, pixelsOf) {
        let from = null;
        const at = event => {
            const box = widths.getBoundingClientRect(), part = Math.min(1, Math.max(0, (event.clientX - box.left - GUTTER) / pixelsOf(widths)));
            return part;
        };
        widths.addEventListener("pointerdown", event => {
            const over = event.clientY - widths.getBoundingClientRect().top < OVERVIEW;
            from = {part: at(event), first: over ? 0 : view.from, last: over ? view.span : view.to};
            widths.setPointerCapture(event.pointerId);
        });
        widths.addEventListener("pointerup", event => {
            const to = at(event), spot = part => from.first + part * (from.last - from.first);
            if (from && Math.abs(to - from.part) * pixelsOf(widths) > CLICK_PIXELS)
                view.set(spot(Math.min(from.part, to)), spot(Math.max(from.part, to)));
            else if (from && from.first === 0 && from.last === view.span)
                view.pan(spot(to) - (view.from + view.to) / 2);
            from = null;
        });
    }
    function showTip(state, tip, canvas, event, hit) {
        tip.hidden = !hit;
        if (!hit)
            return;
        const words = hint(state, hit), box = canvas.parentElement.parentElement.getBoundingClientRect();
        tip.replaceChildren(el("b", null, words[0]), ...words.slice(1).map(line => el("div", null, line)));
        const left = event.clientX - box.left + 14;
        tip.style.left = Math.max(0, Math.min(left, box.width - tip.offsetWidth - 4)) + "px";
        tip.style.top = event.clientY - box.top + 16 + "px";
    }
    function keys(state, on, event, run, view) {
        const middle = (view.from + view.to) / 2, step = (view.to - view.from) / 5;
        const next = by => on.select(state.selected < 0 ? (by > 0 ? 0 : run.ops.length - 1)
            : Math.min(run.ops.length - 1, Math.max(0, state.selected + by)));
        const acts = {"+": () => view.zoom(0.5, middle), "=": () => view.zoom(0.5, middle), "-": () => view.zoom(2, middle),
            "0": () => view.set(0, view.span), ArrowLeft: () => view.pan(-step), ArrowRight: () => view.pan(step), n: () => next(1), p: () => next(-1),
            c: () => run.ops[state.selected] && run.ops[state.selected][C.waitedFor] >= 0 && on.select(run.ops[state.selected][C.waitedFor]),
            Escape: () => {
                state.marked = new Set();
                on.select(-1, true);
            }};
        if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(acts, event.key) || !run.ops.length)
            return;
        event.preventDefault();
        acts[event.key]();
    }

    acs.timeline = {timeline, layRows, perPixel, makeView};
})(window.acsReport = window.acsReport || {});
