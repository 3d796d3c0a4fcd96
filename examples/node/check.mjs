// Checks keys against keys.json, without a broker: node check.mjs ../keys.json
import { readFileSync } from "node:fs";
import { sessionKey } from "./key.mjs";

const wrong = JSON.parse(readFileSync(process.argv[2])).filter((known) => sessionKey(known) !== known.key);
for (const known of wrong) console.error(`${sessionKey(known)} should be ${known.key}`);
process.exit(wrong.length ? 1 : 0);
