// Follows changes of facts over HTTP, through restarts. npm install, then:
//   node follow.mjs 'http://127.0.0.1:8000/v1/facts/updates?tenant_id=acme'
// MEMSTREAM_TOKEN: the bearer token, if the server has a token file. Prints one line for each record.
import { EventSource } from "eventsource";

const FIRST_WAIT = 1_000, LONGEST_WAIT = 30_000; // milliseconds
const address = process.argv[2];
let position; // store it after you have handled an event, and start with it after a restart of this program
let wait = FIRST_WAIT;

function follow() {
  const source = new EventSource(address, {
    fetch: (url, options) => {
      const headers = { ...options.headers };
      if (position) headers["Last-Event-ID"] = position; // a new EventSource does not know it
      if (process.env.MEMSTREAM_TOKEN) headers.Authorization = `Bearer ${process.env.MEMSTREAM_TOKEN}`;
      return fetch(url, { ...options, headers });
    },
  });
  source.addEventListener("open", () => { wait = FIRST_WAIT; });
  source.addEventListener("fact.updated", (event) => {
    console.log(event.data);
    position = event.lastEventId;
  });
  for (const name of ["position", "end"])
    source.addEventListener(name, (event) => { position = event.lastEventId || position; });
  source.addEventListener("error", (event) => {
    if (source.readyState !== EventSource.CLOSED) return; // a lost connection: EventSource reconnects by itself
    // Any answer other than 200 closes an EventSource for good, such as the 502 of a proxy while the server restarts.
    if (event.code === 410) throw new Error("the log no longer has the next records: read GET /v1/facts, start without a position");
    if (event.code < 500 && event.code !== 429) throw new Error(`${event.code}: the request is invalid; a retry does not help`);
    setTimeout(follow, wait * (0.5 + Math.random() / 2));
    wait = Math.min(2 * wait, LONGEST_WAIT);
  });
}

follow();
