// Shows times in the reader's zone, and loads a page again when memory changes. Every page works without it.
// It sets text and no markup: the content policy allows no Trusted Types policy.
"use strict";

const RELOAD_MILLISECONDS = 3000; // from the start of a page to its earliest reload

const inZone = new Intl.DateTimeFormat("en-GB", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  hourCycle: "h23", timeZoneName: "short",
});

for (const time of document.querySelectorAll("time")) {
  const parts = inZone.formatToParts(new Date(time.dateTime)).map(({ type, value }) => [type, value]);
  const at = Object.fromEntries(parts);
  time.title = time.textContent;
  time.textContent = `${at.year}-${at.month}-${at.day} ${at.hour}:${at.minute}:${at.second} ${at.timeZoneName}`;
}

function follow(address) {
  const outdated = document.getElementById("outdated");
  let after = "";
  let changed = false;
  let due = false; // memory has changed, and the page is old enough
  let touched = false; // the reader wrote or opened something that a reload would lose
  let leaving = false; // a reload would cancel the way to the next page
  let stream = null;

  function reload() {
    const field = document.activeElement?.matches("input, select, textarea");
    if (!due || leaving) return;
    if (touched || field || !document.getSelection().isCollapsed) outdated.hidden = false;
    else location.reload();
  }

  function change() {
    if (changed) return;
    changed = true;
    setTimeout(() => {
      due = true;
      reload();
    }, Math.max(0, RELOAD_MILLISECONDS - performance.now()));
  }

  function close() {
    stream?.close();
    stream = null;
  }

  function open() {
    const url = new URL(address, location.href);
    if (after) url.searchParams.set("after", after);
    stream = new EventSource(url);
    stream.addEventListener("position", (event) => { after = event.lastEventId; });
    stream.addEventListener("fact.updated", change);
    stream.addEventListener("turn.handled", change);
    stream.addEventListener("end", (event) => {
      if (JSON.parse(event.data).reason !== "unauthorized") return; // the browser connects again
      close();
      change(); // the page of a lost sign-in goes away
    });
    stream.addEventListener("error", () => {
      if (stream?.readyState === EventSource.CLOSED) outdated.hidden = false; // refused: nothing follows
    });
  }

  document.addEventListener("input", () => { touched = true; });
  document.addEventListener("click", (event) => { touched ||= event.target.closest("summary") !== null; });
  document.addEventListener("focusout", () => setTimeout(reload));
  document.addEventListener("selectionchange", reload);
  document.addEventListener("visibilitychange", () => {
    close(); // a browser opens only six connections to a server
    if (!document.hidden) open();
  });
  window.addEventListener("beforeunload", () => {
    leaving = true;
    close();
  });
  open();
}

const page = document.querySelector("main[data-updates]");
if (page !== null) follow(page.dataset.updates);
