// Follows changes of facts over HTTP, through restarts. npm install, then:
//   node follow.mjs 'http://127.0.0.1:8000/v1/facts/updates?tenant_id=acme'
// MEMSTREAM_TOKEN: the bearer token, where the server has a file of tokens. Prints each record on a line.
import { EventSource } from "eventsource";

const FIRST_WAIT = 1_000, LONGEST_WAIT = 30_000; // milliseconds
const address = process.argv[2];
let position; // store it after you have handled an event, and begin with it after a restart of your own
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
    if (source.readyState !== EventSource.CLOSED) return; // a lost connection: it comes back by itself
    // An answer other than 200, such as the 502 of a proxy while the server restarts, ends an EventSource for good.
    if (event.code === 410) throw new Error("the log no longer has what follows: read GET /v1/facts, begin without a position");
    if (event.code < 500 && event.code !== 429) throw new Error(`${event.code}: this request is wrong, and stays so`);
    setTimeout(follow, wait * (0.5 + Math.random() / 2));
    wait = Math.min(2 * wait, LONGEST_WAIT);
  });
}

follow();
