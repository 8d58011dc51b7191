// The timeline's two canvases: curves of the width above, rows below. Draws what it is given, and keeps nothing.
(function (acs) {
    "use strict";
    const {C, nameOf, time, timeAt, count, percent, phases, chain} = acs.model;
    const {pathWords, pathColour, isGpuEmpty} = acs.words;
    const {colour, cut, inkOn, ticks} = acs.draw;
    const {above, perPixel} = acs.curves;

    const GUTTER = 118, RIGHT = 14, AXIS = 22, OVERVIEW = 30, STRIP = 46; // pixels
    const CHAIN_DRAWN = 200;
    const WAIT_NAMES = ["waits for one op", "waits for all ops", "waits for room in the FIFO"];

    // Pixels of a canvas that stand for time.
    const pixelsOf = w => Math.max(10, Math.floor(w - GUTTER - RIGHT));

    // ---------------------------------------------------------------------------------------------------------- widths

    // Overview with the shown part, axis, and strips: running, ready, in the window, part of the GPU.
    function drawWidths(context, w, run, view, curves) {
        const pixels = pixelsOf(w);
        const theme = {text: colour("text"), faint: colour("faint"), line: colour("line"), curve: colour("curve")};
        context.font = "12px system-ui, sans-serif";
        context.textBaseline = "middle";
        drawOverview(context, pixels, view, curves, theme);
        drawAxis(context, pixels, view, theme, OVERVIEW, heightOfWidths(run, curves));
        stripsOf(run, curves).forEach((strip, place) =>
            drawStrip(context, pixels, view, strip, OVERVIEW + AXIS + place * (STRIP + 6), theme));
    }
    function stripsOf(run, curves) {
        const limit = Number(run.options.window) || 0;
        const all = [{name: "ops running", curve: curves.running}, {name: "ready, not begun", curve: curves.ready},
            {name: "in the window", curve: curves.window, aim: limit, words: "limit: " + count(limit)},
            {name: "GPU taken", curve: isGpuEmpty(curves.gpuMost) ? {t: []} : curves.gpu, words: "", top: 1}];
        return all.filter(strip => strip.curve.t.length);
    }
    const heightOfWidths = (run, curves) => OVERVIEW + AXIS + stripsOf(run, curves).length * (STRIP + 6);

    function drawOverview(context, pixels, view, curves, theme) {
        const {mean} = perPixel(curves.running.t, curves.running.values, 0, view.span, pixels);
        const top = Math.max(...mean, 1e-9);
        context.fillStyle = theme.faint;
        context.fillText("the whole run", 4, OVERVIEW / 2);
        context.fillStyle = theme.curve;
        for (let x = 0; x < pixels; x++)
            context.fillRect(GUTTER + x, OVERVIEW - 3 - (OVERVIEW - 6) * mean[x] / top, 1,
                (OVERVIEW - 6) * mean[x] / top);
        const left = GUTTER + view.from / view.span * pixels, right = GUTTER + view.to / view.span * pixels;
        context.fillStyle = colour("veil");
        context.fillRect(GUTTER, 0, left - GUTTER, OVERVIEW);
        context.fillRect(right, 0, GUTTER + pixels - right, OVERVIEW);
        context.strokeStyle = colour("accent");
        context.lineWidth = 1.5;
        context.strokeRect(left + 0.5, 1, Math.max(3, right - left - 1), OVERVIEW - 2);
    }
    // The axis names its round times, and the end of what is shown.
    function drawAxis(context, pixels, view, theme, y, bottom) {
        const marks = ticks(view.from, view.to, pixels / 110), step = marks.length > 1 ? marks[1] - marks[0]
            : view.to - view.from;
        const end = view.to >= view.span ? time(view.to) : timeAt(view.to, step / 10);
        const free = GUTTER + pixels - context.measureText(end).width - 40;
        context.lineWidth = 1;
        for (const at of marks) {
            const x = GUTTER + view.x(at, pixels);
            context.fillStyle = theme.line;
            context.fillRect(Math.round(x), y + AXIS - 4, 1, bottom - y - AXIS + 4);
            context.fillStyle = theme.faint;
            context.textAlign = "center";
            if (x < free)
                context.fillText(timeAt(at, step), x, y + AXIS / 2);
        }
        context.textAlign = "right";
        context.fillText(end, GUTTER + pixels, y + AXIS / 2);
        context.textAlign = "left";
    }
    // One curve: the mean of each pixel, and pale the most of it. Its scale is that of the shown span.
    function drawStrip(context, pixels, view, strip, y, theme) {
        const {mean, most} = perPixel(strip.curve.t, strip.curve.values, view.from, view.to, pixels);
        const highest = most.reduce((a, b) => Math.max(a, b), 0), aim = strip.aim || 0;
        const top = strip.top || 1.1 * Math.max(highest, 1, aim <= 8 * highest ? aim : 0);
        const height = value => STRIP * Math.min(1, value / top);
        context.fillStyle = colour("strip");
        context.fillRect(GUTTER, y, pixels, STRIP);
        context.fillStyle = theme.curve;
        for (const [values, alpha] of [[most, 0.35], [mean, 1]]) {
            context.globalAlpha = alpha;
            for (let x = 0; x < pixels; x++)
                if (values[x] > 0)
                    context.fillRect(GUTTER + x, y + STRIP - height(values[x]), 1, height(values[x]));
        }
        context.globalAlpha = 1;
        context.fillStyle = theme.text;
        context.fillText(strip.name, 4, y + (aim > 0 ? 8 : 15));
        context.fillStyle = theme.faint;
        context.fillText("at most " + (strip.top ? percent(highest) : count(highest)), 4, y + (aim > 0 ? 23 : 31));
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

    // ------------------------------------------------------------------------------------------------------------ rows

    function drawRows(context, w, state) {
        const pixels = pixelsOf(w);
        context.font = "11px system-ui, sans-serif";
        context.textBaseline = "middle";
        const theme = {text: colour("text"), faint: colour("faint"), line: colour("line"), strip: colour("strip"),
            back: colour("back"), wait: colour("p-host-wait"), memory: colour("memory"), idle: colour("idle"),
            launch: colour("launch"), bundle: colour("bundle")};
        const paints = new Map();
        const paint = name => {
            if (!paints.has(name))
                paints.set(name, colour(name));
            return paints.get(name);
        };
        theme.kernel = label => paint(state.colours.name(label));
        theme.path = name => paint(pathColour(name));
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
            const left = Math.max(-2, state.view.x(one.from, pixels)),
                right = Math.min(pixels + 2, state.view.x(one.to, pixels));
            if (right - left < 4)
                continue;
            context.fillStyle = theme.bundle;
            context.fillRect(GUTTER + left - 1, one.top + 0.5, right - left + 2, one.bottom - one.top - 1);
            context.strokeStyle = theme.faint;
            context.strokeRect(GUTTER + Math.round(left) - 1.5, one.top + 0.5, Math.round(right - left) + 2,
                one.bottom - one.top - 1);
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
        context.fillStyle = theme.launch;
        let drawn = -1;
        for (let at = above(row.launches, view.from - 1); at < row.launches.length &&
            row.launches[at] <= view.to; at++) {
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
            context.fillStyle = inkOn(waits ? theme.wait : theme.memory);
            context.fillText(cut(context, waits ? WAIT_NAMES[block.type] || "waits" : block.type, right - left - 8),
                GUTTER + left + 4,
                row.y + row.height / 2);
        }
    }

    // The path in the colours of its reasons. In a pixel the longest part counts.
    function drawPath(context, row, pixels, state, theme) {
        const {run, view} = state, height = row.height - 4, longest = new Float64Array(pixels),
            reasons = new Int16Array(pixels).fill(-1);
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
        for (const [, from, to, reason] of row.path) {
            const left = Math.max(0, view.x(from, pixels)), right = Math.min(pixels, view.x(to, pixels));
            if (right - left <= 40)
                continue;
            context.fillStyle = inkOn(theme.path(run.path_reasons[reason]));
            context.fillText(cut(context, pathWords(run.path_reasons[reason])[0], right - left - 8), GUTTER + left + 4,
                row.y + row.height / 2);
        }
    }

    // Ops of a lane. Those below a pixel are drawn together: the colour of the longest, as dark as they cover the
    // pixel.
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
            drawOp(context, op, Math.max(0, left), Math.min(pixels, right), y, height, isDim(state, row.ops[at], op),
                state,
                theme);
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
            context.fillStyle = inkOn(theme.kernel(op[C.label]));
            context.fillText(cut(context, nameOf(state.run, op[C.label]), right - left - 8), GUTTER + left + 4, y +
                height / 2 + 0.5);
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
            const left = Math.max(0, state.view.x(from, pixels), end), right = Math.min(pixels, state.view.x(to,
                pixels));
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
                right: GUTTER + Math.min(pixels, Math.max(0, view.x(op[C.ended], pixels))), y: row.y,
                    height: row.height};
        };
        const isInside = (from, to) => Math.max(from.right, to.left) > GUTTER &&
            Math.min(from.right, to.left) < GUTTER + pixels;
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
        const places = [state.selected, ...chain(run, state.selected, CHAIN_DRAWN)];
        context.strokeStyle = theme.text;
        context.lineWidth = 1.5;
        for (let at = 0; at + 1 < places.length; at++) {
            const to = box(places[at]), from = box(places[at + 1]);
            if (to && from && isInside(from, to))
                arrow(context, from.right, from.y + from.height / 2, to.left, to.y + to.height / 2);
        }
        const own = box(state.selected);
        if (own) {
            frame(own, 3);
            drawPhases(context, pixels, state, own);
        }
    }
    function arrow(context, x0, y0, x1, y1) {
        if (y0 === y1) // in one row: below the names
            y0 = y1 = y0 + 5;
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
            const left = Math.max(0, state.view.x(phase.from, pixels)),
                right = Math.min(pixels, state.view.x(phase.to, pixels));
            context.fillStyle = colour(pathColour(phase.reason));
            if (right > left)
                context.fillRect(GUTTER + left, own.y + own.height - 3, right - left, 3);
        });
    }
    acs.paint = {drawWidths, heightOfWidths, drawRows, pixelsOf, GUTTER, OVERVIEW, CHAIN_DRAWN, WAIT_NAMES};
})(window.acsReport = window.acsReport || {});
