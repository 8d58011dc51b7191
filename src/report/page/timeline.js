// The timeline: which op ran where and when, callers above, and how wide it was. Owns the view (the span of time that
// is shown),
// the selected op and what is highlighted. Others ask it to show ops.
(function (acs) {
    "use strict";
    const {C, nameOf, placeOf, opName, time, width, percent, plural, partOfGpu, reasonOf, phases, conflictOf, chain,
        opStart,
        opEnd, idleSpans} = acs.model;
    const {pathWords, pathColour, waitWords} = acs.words;
    const {el, kernelColours, sharp, onceAFrame} = acs.draw;
    const {layRows, makeView, spanToShow} = acs.rows;
    const {above, curvesOf} = acs.curves;
    const {drawWidths, heightOfWidths, drawRows, pixelsOf, GUTTER, OVERVIEW, CHAIN_DRAWN, WAIT_NAMES} = acs.paint;

    const CHAIN_LISTED = 12, CLICK_PIXELS = 4;

    // --------------------------------------------------------------------------------------------------------- details

    // The selected op: what it is, its phases, and what it waited for.
    function details(state, select) {
        const {run} = state, op = run.ops[state.selected];
        if (!op)
            return el("p", {class: "note"}, "Click an op to see what it waited for.");
        const start = opStart(op), length = Math.max(1, opEnd(op) - start), parts = phases(run, op);
        const paint = part => part.ran ? state.colours.css(op[C.label]) : "var(--" + pathColour(part.reason) + ")";
        return el("div", {class: "details"},
            el("h3", null, opName(run, op), " ", el("span", {class: "note"}, placeOf(run, op[C.label]))),
            el("p", null, factsOf(run, op)),
            el("div", {class: "phases", role: "img", "aria-label": parts.map(part => part.name + " " +
                time(part.to - part.from)).join(", ")},
                parts.map(part => el("div", {style: "left:" + 100 * (part.from - start) / length + "%;width:" +
                    100 * (part.to - part.from) / length + "%;background:" + paint(part)}))),
            el("ol", {class: "phase-list"}, parts.map(part => el("li", null,
                el("span", {class: "key", style: "background:" + paint(part)}), el("b", null,
                    time(part.to - part.from)), " ",
                part.name, part.name.startsWith("waited") && conflictOf(run, op) ? " (" + conflictOf(run, op) + ")"
                    : ""))),
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
        const method = run.methods[op[C.method]] || "unknown";
        if (op[C.slot] >= 0)
            facts.push("in stream " + op[C.slot]);
        facts.push(method === "launch" ? "issued by a launch of its own" : "issued by the method " + method);
        if (op[C.bundle] >= 0)
            facts.push("in bundle " + op[C.bundle]);
        facts.push("the chain of ops that it needs has " + plural(op[C.level], "op"));
        if (op[C.critical])
            facts.push("on the critical path");
        if (op[C.status] !== 0)
            facts.push("ended with status " + op[C.status]);
        return facts.join(", ") + ".";
    }
    function chainList(run, place, select) {
        const places = chain(run, place, CHAIN_DRAWN);
        if (!places.length)
            return el("p", {class: "note"}, "It needed no other recorded op.");
        const link = at => el("button", {type: "button", class: "link", onclick: () => select(at)},
            opName(run, run.ops[at]));
        return el("details", null, el("summary", null, "The ops before it"),
            el("p", {class: "note"},
                "The nearest first. Of the ops that an op needed, the list has the one that ended last."),
            el("ol", {class: "chain"}, places.slice(0, CHAIN_LISTED).map((at, step) => el("li", null, link(at), " ",
                el("span", {class: "note"}, conflictOf(run, run.ops[step ? places[step - 1] : place]))))),
            places.length > CHAIN_LISTED ? el("p", {class: "note"}, "and " + (places.length < CHAIN_DRAWN ? ""
                : "at least ") +
                (places.length - CHAIN_LISTED) + " more.") : null);
    }

    // Words for the tooltip of an op, or of what a caller did.
    function hint(state, hit) {
        const {run} = state;
        if (hit.block && typeof hit.block.type === "number")
            return [WAIT_NAMES[hit.block.type] || "waits", time(hit.block.to - hit.block.from),
                hit.block.label >= 0 ? "behind " + nameOf(run, hit.block.label) + ", " + placeOf(run, hit.block.label)
                    : ""].filter(Boolean);
        if (hit.block)
            return [hit.block.type + " of " + acs.model.bytes(hit.block.bytes), time(hit.block.to - hit.block.from),
                hit.block.at].filter(Boolean);
        if (hit.part) {
            const words = pathWords(run.path_reasons[hit.part[3]]);
            return [words[0] + ", " + time(hit.part[2] - hit.part[1]), words[1],
                run.ops[hit.part[0]] ? opName(run, run.ops[hit.part[0]]) : ""].filter(Boolean);
        }
        const op = run.ops[hit.place];
        const waited = op[C.reasonNs] > 0
            ? "waited longest for " + waitWords(reasonOf(run, op)) + ": " + time(op[C.reasonNs]) : "";
        return [opName(run, op), "ran " + time(op[C.ended] - op[C.began]), waited,
            placeOf(run, op[C.label])].filter(Boolean);
    }

    // ------------------------------------------------------------------------------------------------------- the
    // widget
    // The section of one run: {node, show(places), highlight(label), select(place), draw()}.
    function timeline(run) {
        const layout = layRows(run), curves = curvesOf(run), view = makeView(run.span), colours = kernelColours(run);
        const state = {run, view, colours, rows: layout.rows, bundles: layout.bundles, height: layout.height,
            rowOf: new Map(), idle: idleSpans(run), selected: -1,
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
            drawWidths(sharp(widths, w, heightOfWidths(run, curves)), w, run, view, curves);
            drawRows(sharp(rows, w, layout.height), w, state);
            shown.textContent = "shown: " + time(view.from) + " to " + time(view.to);
        });
        view.followers.push(draw);
        if (run.began > run.took) // the program loaded its data first: show the run
            view.set(run.began, run.began + run.took);

        function select(place, keepView) {
            state.selected = run.ops[place] ? place : -1;
            panel.replaceChildren(details(state, select));
            panel.classList.toggle("open", state.selected >= 0);
            const op = run.ops[state.selected], row = state.rowOf.get(state.selected);
            if (op && !keepView && (opEnd(op) < view.from || (op[C.began] || opStart(op)) > view.to))
                view.set(...spanToShow(run, [state.selected]));
            if (row && !keepView)
                reveal(row);
            draw();
        }
        function reveal(row) {
            scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, row.y + row.height - scroller.clientHeight + 10),
                Math.max(0, row.y - 30));
        }
        // The first of these ops is selected, and its wait is shown. `kind`: of the finding that they show.
        function show(places, kind) {
            const known = places.filter(place => run.ops[place]);
            state.marked = new Set(known);
            if (known.length) {
                view.set(...spanToShow(run, known, kind));
                select(known[0], true);
                if (state.rowOf.has(known[0]))
                    reveal(state.rowOf.get(known[0]));
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
        listen(state, rows, widths, {draw, select, hitAt, tip, view, run});
        fillLegend(legend, run, colours, highlight);
        const tools = toolbar(state, draw, shown);
        select(-1);
        const node = el("div", {class: "timeline"}, tools, legend, el("div", {class: "widths-box"}, widths),
            el("div", {class: "rows-box"}, scroller, tip), marksLegend(state), pathLegend(run), panel);
        new ResizeObserver(draw).observe(node);
        return {node, show, highlight, select, draw, view, state, curves};
    }
    // Buttons above the picture.
    function toolbar(state, draw, shown) {
        const {view} = state;
        const button = (words, label, act) => el("button", {type: "button", class: "tool", "aria-label": label,
            title: label, onclick: act}, words);
        const critical = el("button", {type: "button", class: "tool critical", "aria-pressed": "false", onclick: () => {
            state.critical = !state.critical;
            critical.setAttribute("aria-pressed", String(state.critical));
            draw();
        }, title: "Show the ops of the critical path: the longest chain of ops that need each other"}, "Critical path");
        return el("div", {class: "tools"},
            button("Zoom in", "Zoom in (+)", () => view.zoom(0.5, (view.from + view.to) / 2)),
            button("Zoom out", "Zoom out (-)", () => view.zoom(2, (view.from + view.to) / 2)),
            button("Whole run", "Show the whole run (0)", () => {
                state.marked = new Set();
                view.set(0, view.span);
            }), critical, shown);
    }
    // A button for each kernel that has a colour of its own.
    function fillLegend(legend, run, colours, highlight) {
        for (const label of colours.labels)
            legend.append(el("button", {type: "button", "aria-pressed": "false", "data-label": label,
                onclick: () => highlight(label)},
                el("span", {class: "key", style: "background:" + colours.css(label)}), nameOf(run, label)));
        if (colours.more)
            legend.append(el("span", {class: "note"}, el("span", {class: "key", style: "background:var(--k-other)"}),
                "others"));
    }
    function widthsLabel(run) {
        return "Ops running, ready and in the window over time. On average " + width(run.summary.width_possible) +
            " ops could run at once, and " + width(run.summary.width_achieved) + " ran.";
    }
    function rowsLabel(run, layout) {
        return plural(run.ops.length, "op") + " on " + plural(layout.lanes,
            "row") + ". Plus and minus zoom, arrows move, n and p go to the next " +
            "and previous op, c goes to the op that the selected op waited for, 0 shows the whole run.";
    }
    function marksLegend(state) {
        const key = (name, words) => el("span", null, el("span", {class: "key", style: "background:var(--" + name +
            ")"}),
            words);
        const {run} = state, frame = (name, words) => el("span", null, el("span", {class: "key " + name}), words);
        return el("p", {class: "note marks"}, state.idle.length ? key("idle", "no op ran") : null,
            run.ops.some(op => op[C.entered] > 0) ? key("launch", "the caller launches an op") : null,
            run.waits.length ? key("p-host-wait", "the caller waits") : null,
            run.memory.length ? key("memory", "the caller allocates or frees memory") : null,
            state.bundles.length ? key("bundle", "a bundle") : null,
            run.ops.some(op => op[C.status] !== 0) ? frame("failed", "an op that failed") : null,
            frame("framed", "thin frame: an op of the finding that you chose; thick frame: the op that you chose"),
            el("span", null, "Drag to move. Click the picture, then scroll to zoom. Keys: + - 0, arrows, n, p, c."));
    }

    function pathLegend(run) {
        const used = run.path_reasons.filter((name, at) => run.path_ns[at] > 0);
        return used.length ? el("p", {class: "note marks"}, el("b", {title: "What the end of the run waited for"},
            "The path:"),
            used.map(name => el("span", {title: pathWords(name)[1]},
            el("span", {class: "key", style: "background:var(--" + pathColour(name) + ")"}),
                pathWords(name)[0]))) : null;
    }

    // What is under the mouse: {place} of an op, {block} of a caller, {part} of the path, or null.
    function hitOf(state, layout, canvas, event) {
        const box = canvas.getBoundingClientRect(), pixels = pixelsOf(box.width);
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
        for (let place = Math.max(0, above(row.began, at) - 1); place < row.ops.length && row.began[place] <= at +
            near; place++) {
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
        const spanOf = canvas => pixelsOf(canvas.clientWidth);
        let drag = null;
        const wheel = event => {
            const canvas = event.currentTarget, pixels = spanOf(canvas);
            const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
            if (!sideways && !event.ctrlKey && document.activeElement !== rows)
                return;
            event.preventDefault();
            const x = event.clientX - canvas.getBoundingClientRect().left - GUTTER;
            if (sideways)
                view.pan((event.deltaX || event.deltaY) * (view.to - view.from) / pixels);
            else
                view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006),
                    view.time(Math.max(0, Math.min(pixels, x)), pixels));
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
                    view.pan(-by * (view.to - view.from) / spanOf(rows));
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
        brush(widths, view);
        rows.addEventListener("keydown", event => keys(state, on, event, run, view));
    }
    // Dragging over the widths shows that span: in the overview of the whole run, else of the shown part.
    function brush(widths, view) {
        let from = null;
        const at = event => {
            const left = widths.getBoundingClientRect().left + GUTTER;
            return Math.min(1, Math.max(0, (event.clientX - left) / pixelsOf(widths.clientWidth)));
        };
        widths.addEventListener("pointerdown", event => {
            const over = event.clientY - widths.getBoundingClientRect().top < OVERVIEW;
            from = {part: at(event), first: over ? 0 : view.from, last: over ? view.span : view.to};
            widths.setPointerCapture(event.pointerId);
        });
        widths.addEventListener("pointerup", event => {
            const to = at(event), spot = part => from.first + part * (from.last - from.first);
            if (from && Math.abs(to - from.part) * pixelsOf(widths.clientWidth) > CLICK_PIXELS)
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
        const acts = {"+": () => view.zoom(0.5, middle), "=": () => view.zoom(0.5, middle), "-": () => view.zoom(2,
            middle),
            "0": () => view.set(0, view.span), ArrowLeft: () => view.pan(-step), ArrowRight: () => view.pan(step),
                n: () => next(1), p: () => next(-1),
            c: () => run.ops[state.selected] && run.ops[state.selected][C.waitedFor] >= 0 &&
                on.select(run.ops[state.selected][C.waitedFor]),
            Escape: () => {
                state.marked = new Set();
                on.select(-1, true);
            }};
        if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(acts, event.key) || !run.ops.length)
            return;
        event.preventDefault();
        acts[event.key]();
    }

    acs.timeline = {timeline};
})(window.acsReport = window.acsReport || {});
