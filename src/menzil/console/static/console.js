// The only script: looks again every few seconds, and keys. Every page works without it.
"use strict";
(() => {
  const doc = document, body = doc.body, root = body.dataset.root || "";
  const $ = (id) => doc.getElementById(id);
  const policy = window.trustedTypes
    ? trustedTypes.createPolicy("menzil", { createHTML: (text) => text })
    : { createHTML: (text) => text };
  const parse = (text) => new DOMParser().parseFromString(policy.createHTML(text), "text/html");
  doc.documentElement.classList.add("scripted");

  // Times
  const relative = (at) => {
    const s = (at - Date.now()) / 1000, a = Math.abs(s);
    const say = (n, u) => (s > 0 ? `in ${n.toFixed(0)} ${u}` : `${n.toFixed(0)} ${u} ago`);
    for (const [u, l] of [["d", 86400], ["h", 3600], ["min", 60]]) if (a >= 2 * l) return say(a / l, u);
    return a < 1 ? "now" : say(a, "s");
  };
  const tick = () => doc.querySelectorAll("main time[datetime]").forEach((one) => {
    const at = Date.parse(one.dateTime);
    if (at && one.firstChild && !one.dataset.still) one.firstChild.data = relative(at);
  });

  // Morph: the old elements stay, so focus, selection, scroll, open details and checked boxes stay with them.
  const OWN = { DETAILS: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };
  const name = (node) => node.nodeType === 1 ? node.id || node.dataset.key || "" : "";
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && name(a) === name(b);
  const morph = (old, now) => {
    if (old.nodeType !== 1) { if (old.data !== now.data) old.data = now.data; return; }
    if (old.isEqualNode(now)) return;
    const own = OWN[old.nodeName] || [];
    for (const { name: n } of [...old.attributes]) if (!now.hasAttribute(n) && !own.includes(n)) old.removeAttribute(n);
    for (const { name: n, value } of now.attributes)
      if (!own.includes(n) && old.getAttribute(n) !== value) old.setAttribute(n, value);
    if (old.nodeName === "TEXTAREA") return;
    const known = new Map([...old.children].filter(name).map((one) => [name(one), one]));
    let at = old.firstChild;
    for (const next of [...now.childNodes]) {
      const same = name(next) && known.get(name(next));
      if (same && same !== at && alike(same, next)) old.insertBefore(same, at);
      const here = same && alike(same, next) ? same : at;
      if (here && alike(here, next)) { if (here === at) at = at.nextSibling; morph(here, next); }
      else old.insertBefore(doc.adoptNode(next), at);
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  };

  // On a narrow screen the navigation is one line: show where this page stands in it.
  doc.querySelectorAll(".places [aria-current]").forEach((one) => { one.closest(".places").scrollLeft = one.offsetLeft - 48; });

  // Refresh
  const every = Number(body.dataset.live) * 1000, pause = $("pause"), state = doc.querySelector(".state");
  let tag = null, paused = false, busy = false, failed = 0, timer = 0;
  const main = $("main");
  const selecting = () => { const s = doc.getSelection(); return s && !s.isCollapsed && main.contains(s.anchorNode); };
  const held = () => paused || doc.hidden || selecting() || main.querySelector("input[type=checkbox]:checked");
  const told = (words) => { const one = $("told"); if (one && one.textContent !== words) one.textContent = words; };
  const asOf = (time, ms, age) => {
    for (const [n, text] of [["as-of", time], ["ms", ms], ["age", Number(age) >= 5 ? `, ${age} s old` : ""]]) {
      const one = doc.querySelector(`#as-of [data-${n}]`);
      if (one) one.textContent = text;
    }
  };
  const look = async (asked) => {
    if (busy || !every || (!asked && held())) return;
    busy = true;
    try {
      const headers = { "X-Menzil-Live": "1" };
      if (tag) headers["If-None-Match"] = tag;
      const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(8000) });
      if (answer.status === 401) { location.reload(); return; }
      if (answer.status === 304) {
        asOf(...(answer.headers.get("X-Menzil-As-Of") || "").split(" "));
      } else if (answer.ok) {
        const text = await answer.text();
        if (asked || !held()) {
          tag = answer.headers.get("ETag");
          const now = parse(text);
          doc.title = now.title;
          morph(main, now.getElementById("main"));
          const at = now.querySelector("[data-as-of]"), ms = now.querySelector("[data-ms]"), age = now.querySelector("[data-age]");
          if (at) asOf(at.textContent, ms.textContent, parseInt(age.textContent.slice(2), 10));
          const count = main.querySelector("[data-told]");
          if (count) told(count.dataset.told);
        }
      } else throw new Error(answer.status);
      failed = 0;
    } catch { failed += 1; }
    busy = false;
    if (state) state.classList.toggle("stale", failed > 1);
    if (failed === 2) told("The console does not answer.");
  };
  const go = () => { clearTimeout(timer); timer = setTimeout(async () => { await look(false); tick(); go(); }, every * Math.min(1 + failed, 6)); };
  const toggle = () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Paused" : "Pause";
    told(paused ? "The refresh is paused." : "The refresh goes on.");
  };
  if (every) {
    pause.addEventListener("click", toggle);
    doc.addEventListener("visibilitychange", () => { if (!doc.hidden) look(false).then(tick); });
    go();
  } else setInterval(tick, 5000);

  // Copy, checkboxes, links in templates
  doc.addEventListener("click", (event) => {
    const all = event.target.closest("[data-all]");
    if (all) main.querySelectorAll(`input[name=${all.dataset.all}]`).forEach((box) => { box.checked = all.checked; });
  });

  // Keys
  const dialog = $("keys"), off = $("keys-off");
  let going = false;
  const store = { get: () => { try { return localStorage.menzilKeys; } catch { return ""; } }, set: (v) => { try { localStorage.menzilKeys = v; } catch { /* private */ } } };
  if (off) { off.checked = store.get() === "off"; off.addEventListener("change", () => store.set(off.checked ? "off" : "on")); }
  const open = $("keys-open");
  if (open) open.addEventListener("click", () => dialog.showModal());
  const row = (step) => {
    const rows = [...main.querySelectorAll("tbody tr")].map((one) => one.querySelector("a, input, summary")).filter((one) => one && one.offsetParent);
    const at = rows.findIndex((one) => one.closest("tr").contains(doc.activeElement));
    const next = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))];
    if (next) next.focus();
  };
  doc.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") || dialog.open) return;
    if (off && off.checked && event.key !== "?") return;
    if (going) {
      going = false;
      const place = doc.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (place) { event.preventDefault(); place.click(); }
      return;
    }
    const does = {
      "/": () => $("find") && $("find").focus(), g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
      j: () => row(1), k: () => row(-1), ".": () => look(true), p: () => pause && toggle(), "?": () => dialog.showModal(),
    }[event.key];
    if (does) { event.preventDefault(); does(); }
  });
})();
