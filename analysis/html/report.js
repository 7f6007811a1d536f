"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("script");

  // What a reader chose stays over a reload; a page from a file may not be allowed to keep anything.
  const keep = (store, key, value) => { try { store().setItem(key, value); } catch (e) { /* not kept */ } };
  const kept = (store, key) => { try { return store().getItem(key); } catch (e) { return null; } };
  const always = () => localStorage, session = () => sessionStorage;

  // Colour scheme: the system's, or the one that was chosen.
  const button = document.getElementById("scheme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.scheme ? root.dataset.scheme === "dark" : dark.matches;
  const nameButton = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
  const chosen = kept(always, "pipelag-scheme");
  if (chosen === "dark" || chosen === "light") root.dataset.scheme = chosen;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.scheme = isDark() ? "light" : "dark";
    keep(always, "pipelag-scheme", root.dataset.scheme);
    nameButton();
  });
  dark.addEventListener("change", nameButton);
  nameButton();

  // The detail of a row: shown by pointer or focus, held by a click or Enter, closed by Escape.
  const panel = document.getElementById("detail");
  let shown = null, held = false;
  const show = row => {
    if (held && row !== null) return;
    if (shown) shown.classList.remove("shown");
    shown = row;
    panel.hidden = !row;
    if (!row) return;
    row.classList.add("shown");
    panel.classList.toggle("above", row.getBoundingClientRect().top > innerHeight / 2); // never over the row itself
    panel.textContent = row.dataset.detail;
  };
  const hold = row => {
    const again = held && shown === row;
    held = false;
    show(row);
    held = !again;
  };
  document.addEventListener("keydown", event => {
    if (event.key !== "Escape") return;
    held = false;
    show(null);
  });

  // Values of cells: the first number with its unit; what is none comes last, in either direction.
  const units = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
  const collator = new Intl.Collator("en", { numeric: true });
  const number = text => {
    if (text === "never") return Infinity;
    const match = /[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?([kMGTP])?/.exec(text);
    return match ? parseFloat(match[0]) * (units[match[3]] || 1) : NaN;
  };
  const compare = (a, b, numeric, direction) => {
    if (!numeric) return direction * collator.compare(a, b);
    const x = number(a), y = number(b);
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
    return x === y ? 0 : direction * (x < y ? -1 : 1);
  };

  const setUp = section => {
    const body = section.querySelector("tbody"), heads = [...section.querySelectorAll("th")];
    const input = section.querySelector("input"), output = section.querySelector("output");
    const rows = [...body.rows], names = heads.map(head => head.textContent.toLowerCase());
    const remember = () => keep(session, "pipelag-" + section.id, JSON.stringify(state));
    let state = { filter: "", column: -1, direction: 1 };

    // One row of a table is in the order of the tab key; arrows move on from it.
    const visible = () => [...body.rows].filter(row => !row.hidden);
    const tabStop = row => {
      for (const other of rows) other.tabIndex = -1;
      if (row) row.tabIndex = 0;
    };

    // Words that all have to stand in the row; column:word has to be that cell, or its beginning.
    const matches = (row, words) => words.every(word => {
      const colon = word.indexOf(":"), at = colon > 0 ? names.indexOf(word.slice(0, colon)) : -1;
      const cells = [...row.cells].map(cell => cell.textContent.toLowerCase());
      if (at >= 0) return cells[at].startsWith(word.slice(colon + 1));
      return cells.some(cell => cell.includes(word));
    });
    const filter = () => {
      const words = state.filter.toLowerCase().split(/\s+/).filter(word => word);
      for (const row of rows) row.hidden = !matches(row, words);
      const left = visible();
      output.textContent = left.length === rows.length ? rows.length + " rows" : left.length + " of " + rows.length + " rows";
      tabStop(left[0]);
    };
    const sort = () => {
      const at = state.column, numeric = at >= 0 && heads[at].classList.contains("number");
      const order = rows.map((row, index) => ({ row, index, text: at < 0 ? "" : row.cells[at].textContent }));
      if (at >= 0) order.sort((a, b) => compare(a.text, b.text, numeric, state.direction) || a.index - b.index);
      body.append(...order.map(entry => entry.row));
      heads.forEach((head, index) => {
        if (index === at) head.setAttribute("aria-sort", state.direction > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      tabStop(visible()[0]);
    };

    // Ascending, descending, as it was.
    heads.forEach((head, index) => {
      const name = document.createElement("button");
      name.type = "button";
      name.textContent = head.textContent;
      head.replaceChildren(name);
      name.addEventListener("click", () => {
        if (state.column !== index) Object.assign(state, { column: index, direction: 1 });
        else if (state.direction > 0) state.direction = -1;
        else Object.assign(state, { column: -1, direction: 1 });
        sort();
        remember();
      });
    });
    input.addEventListener("input", () => {
      state.filter = input.value;
      filter();
      remember();
    });
    for (const row of rows) {
      if (!row.dataset.detail) continue;
      row.addEventListener("mousemove", () => { if (row !== shown) show(row); });
      row.addEventListener("focus", () => { tabStop(row); show(row); });
      row.addEventListener("click", () => hold(row));
    }
    body.addEventListener("keydown", event => {
      const list = visible(), at = list.indexOf(event.target);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1 }[event.key];
      if (event.key === "Enter" && at >= 0) hold(list[at]);
      if (to === undefined || at < 0 || !list[to]) return;
      event.preventDefault();
      list[to].focus();
    });

    try { state = Object.assign(state, JSON.parse(kept(session, "pipelag-" + section.id) || "{}")); } catch (e) { /* as it was */ }
    if (state.column >= heads.length) state.column = -1;
    input.value = state.filter;
    sort();
    filter();
  };
  for (const section of document.querySelectorAll(".sheet")) setUp(section);
})();
