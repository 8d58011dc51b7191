// Elements, colours and small charts. Owns no state but the colours of the theme; names reach the page as text alone.
(function (acs) {
    "use strict";
    const SVG = "http://www.w3.org/2000/svg";
    const KERNEL_COLOURS = 8;

    // An element with attributes and children: strings become text. A name "on..." adds a listener, "class" a class.
    function el(tag, attributes, ...children) {
        return fill(document.createElement(tag), attributes, children);
    }
    function svg(tag, attributes, ...children) {
        return fill(document.createElementNS(SVG, tag), attributes, children);
    }
    function fill(node, attributes, children) {
        for (const [name, value] of Object.entries(attributes || {})) {
            if (name.startsWith("on"))
                node.addEventListener(name.slice(2), value);
            else if (value !== null && value !== undefined && value !== false)
                node.setAttribute(name, value === true ? "" : String(value));
        }
        for (const child of children.flat())
            if (child !== null && child !== undefined && child !== false)
                node.append(child);
        return node;
    }

    // A part of the page with a title.
    function section(id, title, intro, ...children) {
        return el("section", {id, "aria-labelledby": id + "-title"}, el("h2", {id: id + "-title"}, title),
            intro ? el("p", {class: "intro"}, intro) : null, ...children);
    }
    // Words in capitals with a low line, calls and settings look like code.
    function codeIn(text) {
        return text.split(/(\b(?:ACS|acs)_\w+(?:=-?\w+)?(?:\([^()]*\))?)/).map((part, at) => at % 2 ? el("code", null,
            part)
            : part);
    }

    // A colour of the theme, as it is now (light or dark).
    const colour = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

    // The colour of text on a colour "#rrggbb": white or nearly black.
    function inkOn(paint) {
        const [red, green, blue] = [1, 3, 5].map(at => parseInt(paint.slice(at, at + 2), 16) / 255);
        return 0.3 * red + 0.59 * green + 0.11 * blue > 0.58 ? "#14171c" : "#ffffff";
    }

    // Colours of kernels by label: those with most time get one of their own.
    function kernelColours(run) {
        const rank = new Map(run.kernels.slice(0, KERNEL_COLOURS).map((row, place) => [row[0], place]));
        const name = label => rank.has(label) ? "k" + rank.get(label) : "k-other";
        return {name, css: label => "var(--" + name(label) + ")", labels: [...rank.keys()],
            more: run.kernels.length > KERNEL_COLOURS};
    }

    // Text cut to a width, with dots; empty where nothing useful fits.
    function cut(context, text, space) {
        if (space < 18)
            return "";
        if (context.measureText(text).width <= space)
            return text;
        let length = Math.floor(text.length * space / context.measureText(text).width);
        while (length > 1 && context.measureText(text.slice(0, length) + "\u2026").width > space)
            length--;
        return length > 1 ? text.slice(0, length) + "\u2026" : "";
    }

    // A canvas that is as sharp as the screen. Returns its context, cleared, in CSS pixels.
    function sharp(canvas, width, height) {
        const ratio = window.devicePixelRatio || 1;
        const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
        if (canvas.width !== w || canvas.height !== h) {
            canvas.width = w;
            canvas.height = h;
            canvas.style.height = height + "px";
        }
        const context = canvas.getContext("2d");
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, height);
        return context;
    }

    // Round steps for an axis of time: at most `most` of them.
    function ticks(from, to, most) {
        const raw = (to - from) / Math.max(1, most);
        const base = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-9)));
        const step = [1, 2, 5, 10].map(factor => factor * base).find(value => value >= raw) || 10 * base;
        const found = [];
        for (let at = Math.ceil(from / step) * step; at <= to && found.length < 1000; at += step)
            found.push(at);
        return found;
    }

    // Bars with a name, a part of the longest, and words: rows of {name, title, value, colour, words, note, second}.
    function bars(rows, options) {
        const most = Math.max(...rows.map(row => row.value + (row.second || 0)), (options && options.most) || 0, 1e-9);
        return el("div", {class: "bars", role: "list"}, rows.map(row => el("div",
            {class: "bar-row" + (row.strong ? " strong" : ""),
            role: "listitem", title: row.title || null},
            el("div", {class: "bar-name"}, row.name, row.note ? el("span", {class: "note"}, row.note) : null),
            el("div", {class: "bar-track"},
                el("div", {class: "bar", style: "width:" + 100 * row.value / most + "%;background:" +
                    (row.colour || "var(--accent)")}),
                row.second ? el("div", {class: "bar hatched", style: "width:" + 100 * row.second / most + "%"}) : null),
            el("div", {class: "bar-words"}, row.words))));
    }

    // One bar of parts, with a legend: parts of {name, value, colour, words, title}.
    function stacked(parts, label) {
        const total = parts.reduce((sum, part) => sum + part.value, 0);
        const shown = parts.filter(part => part.value > 0);
        return el("div", {class: "stack-box"},
            el("div", {class: "stack", role: "img", "aria-label": label + ": " +
                shown.map(part => part.name + " " + part.words).join(", ")},
                shown.map(part => el("div", {class: "part", title: part.name + ": " + part.words,
                    style: "flex-grow:" + part.value / total + ";background:" + part.colour},
                    part.value / total > 0.12 ? el("span", null, part.name) : null))),
            el("dl", {class: "legend-list"}, shown.map(part => el("div", null,
                el("dt", null, el("span", {class: "key", style: "background:" + part.colour}), part.name),
                el("dd", null, el("b", null, part.words), part.title ? " \u2013 " + part.title : "")))));
    }

    // A table whose columns sort: columns of {name, right}, rows of cells; a cell is a value, {text, sort}, or {node,
    // sort}.
    function table(caption, columns, rows, most) {
        const body = el("tbody");
        const shown = rows.slice(0, most || 500);
        const order = {column: -1, up: false};
        const cellOf = (cell, column) => el("td", {class: column.right ? "right" : null, title: cell && cell.title},
            cell && cell.node ? cell.node : cell && cell.text !== undefined ? cell.text : String(cell));
        const fillBody = () => body.replaceChildren(...shown.map(row => el("tr", null,
            row.map((cell, at) => cellOf(cell, columns[at])))));
        const valueOf = cell => cell && cell.sort !== undefined ? cell.sort : cell && cell.text !== undefined
            ? cell.text
            : cell;
        const heads = columns.map((column, at) => el("th", {scope: "col", class: column.right ? "right" : null,
            "aria-sort": "none"},
            el("button", {type: "button", onclick: () => sortBy(at)}, column.name)));
        function sortBy(at) {
            order.up = order.column === at ? !order.up : !columns[at].right;
            order.column = at;
            shown.sort((a, b) => compareValues(valueOf(a[at]), valueOf(b[at])) * (order.up ? 1 : -1));
            heads.forEach((head, place) => head.setAttribute("aria-sort",
                place !== at ? "none" : order.up ? "ascending" : "descending"));
            fillBody();
        }
        fillBody();
        const left = rows.length - shown.length;
        return el("div", {class: "table-box"}, el("table", null, el("caption", null, caption,
            left > 0 ? " The first " + shown.length + " of " + rows.length + "." : ""),
            el("thead", null, el("tr", null, heads)), body));
    }
    function compareValues(a, b) {
        return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    }

    // A function that draws at most once a frame.
    function onceAFrame(draw) {
        let asked = false;
        return () => {
            if (asked)
                return;
            asked = true;
            requestAnimationFrame(() => {
                asked = false;
                draw();
            });
        };
    }

    acs.draw = {el, svg, section, codeIn, colour, inkOn, kernelColours, cut, sharp, ticks, bars, stacked, table,
        onceAFrame};
})(window.acsReport = window.acsReport || {});
