// What only a script can do: copy, and keep an open page in step. Every page is whole without it.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const main = document.getElementById("main");
  const announcer = document.getElementById("announce");
  // Every word comes with the page, in its language.
  const words = announcer.dataset;
  const say = (text) => {
    announcer.textContent = "";
    setTimeout(() => { announcer.textContent = text; }, 50);
  };

  // ---- Copying ----
  const select = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  const copy = async (node) => {
    try {
      await navigator.clipboard.writeText(node.textContent);
      return true;
    } catch {
      select(node);
      return document.execCommand("copy");
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    const node = button && document.getElementById(button.dataset.copy);
    if (!node) return;
    const done = await copy(node);
    button.textContent = done ? words.copied : words.selected;
    say(done ? words.copiedAloud : words.selectedAloud);
    setTimeout(() => { button.textContent = words.copy; }, 2000);
  });

  // ---- Times that go on ----
  const spans = new Intl.RelativeTimeFormat(root.lang);
  const relative = (at) => {
    const ahead = at > Date.now();
    const seconds = Math.floor(Math.abs(at - Date.now()) / 1000);
    if (seconds < 2) return ahead ? words.moment : words.now;
    // What is still to come is told to the nearest, as the server does.
    const whole = ahead ? Math.round : Math.floor;
    const [n, unit] = seconds < 120 ? [seconds, "second"] : seconds < 7200 ? [whole(seconds / 60), "minute"]
      : seconds < 172800 ? [whole(seconds / 3600), "hour"] : [whole(seconds / 86400), "day"];
    return spans.format(ahead ? n : -n, unit);
  };
  const tick = () => {
    for (const time of main.querySelectorAll("time[data-ago]")) time.textContent = relative(Date.parse(time.dateTime));
  };
  setInterval(tick, 15000);

  // ---- Keeping in step: parts that differ are exchanged, all else stays as it is, open and focused ----
  const essence = (node) => {
    const copy = node.cloneNode(true);
    for (const time of copy.querySelectorAll("time")) time.textContent = "";
    for (const button of copy.querySelectorAll("button.copy")) button.textContent = "";
    for (const details of copy.querySelectorAll("details")) details.removeAttribute("open");
    return copy.outerHTML;
  };
  const isBeingEdited = () => [...main.querySelectorAll("textarea, input:not([type=hidden])")]
    .some((field) => field.value !== field.defaultValue);
  const adopt = (html, url) => {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const next = fresh.getElementById("main");
    if (!next || isBeingEdited()) return;
    const before = document.getElementById("sentence")?.textContent;
    const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
    const kept = [...main.querySelectorAll("details[id]")].map(({ id, open, dataset }) => ({ id, open, stands: dataset.stands }));
    const byId = new Map([...main.children].filter((part) => part.id).map((part) => [part.id, part]));
    const parts = [...next.children].map((part) => {
      const old = byId.get(part.id);
      return old && essence(old) === essence(part) ? old : document.adoptNode(part);
    });
    if (parts.length !== main.children.length || parts.some((part, i) => part !== main.children[i])) {
      // A part that stays must not leave the document: it would lose the focus.
      for (const old of [...main.children]) if (!parts.includes(old)) old.remove();
      parts.forEach((part, i) => { if (main.children[i] !== part) main.insertBefore(part, main.children[i] ?? null); });
    }
    // What its reader opened stays open; what its reader closed stays closed until it stands elsewhere.
    for (const { id, open, stands } of kept) {
      const details = document.getElementById(id);
      if (details) details.open = open || (details.open && details.dataset.stands !== stands);
    }
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
    for (const name of ["live", "due"]) {
      if (next.dataset[name]) main.dataset[name] = next.dataset[name]; else delete main.dataset[name];
    }
    document.title = fresh.title;
    tick();
    const after = document.getElementById("sentence")?.textContent;
    if (after && after !== before) say(after);
    plan();
    if (!main.dataset.live) close();
  };

  let busy = false, again = false;
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const url = new URL(location.href);
      for (const once of ["asked", "connected", "error", "error_description", "state"]) url.searchParams.delete(once);
      const answer = await fetch(url, { headers: { accept: "text/html", "x-nameplate-refresh": "1" } });
      if (answer.ok) adopt(await answer.text(), url);
      else if (answer.status === 401 || answer.status === 404 || answer.status === 410) location.reload();
    } catch { /* Away for a moment: the next event or turn looks again. */ }
    busy = false;
    if (again) { again = false; refresh(); }
  };

  // A look is due: its outcome may be no event, so the page asks shortly after.
  let planned;
  const plan = () => {
    clearTimeout(planned);
    const due = Date.parse(main.dataset.due);
    if (!Number.isFinite(due) || !main.dataset.live) return;
    const wait = Math.max(due - Date.now(), 0) + 3000;
    if (wait < 3600000) planned = setTimeout(() => { if (!document.hidden) refresh(); }, wait);
  };

  let source, hiding, polling;
  const close = () => {
    source?.close();
    source = undefined;
    clearInterval(polling);
  };
  const connect = () => {
    if (source || !main.dataset.live || !("EventSource" in window)) return;
    clearInterval(polling);
    source = new EventSource(main.dataset.live);
    source.addEventListener("changed", refresh);
    source.addEventListener("over", () => { close(); location.reload(); });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      close();
      polling = setInterval(() => { if (!document.hidden) refresh(); }, 30000);
    });
  };
  // Browsers open few connections to one host: a page that nobody looks at gives its own back.
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(close, 20000);
    else if (main.dataset.live && !source) { refresh(); connect(); }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) { refresh(); connect(); } });

  // ---- "Check now" without leaving the page ----
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-stay]")) return;
    event.preventDefault();
    const button = form.querySelector("button");
    button.setAttribute("aria-disabled", "true");
    try {
      const answer = await fetch(form.action, {
        method: "POST", body: new URLSearchParams(new FormData(form)), headers: { accept: "text/html" },
      });
      const html = await answer.text();
      if (answer.ok) {
        say(words.looking);
        adopt(html);
        setTimeout(refresh, 3000);
      } else {
        const told = new DOMParser().parseFromString(html, "text/html").querySelector(".sentence")?.textContent;
        if (answer.status === 401) location.reload();
        note(form, told ?? words.failed);
      }
    } catch {
      note(form, words.away);
    }
    button.removeAttribute("aria-disabled");
  });
  const note = (form, text) => {
    let line = document.getElementById("note");
    if (!line) {
      line = document.createElement("p");
      line.id = "note";
      line.className = "notice";
      form.parentElement.before(line);
    }
    line.textContent = text;
    say(text);
  };

  tick();
  connect();
  plan();
})();
