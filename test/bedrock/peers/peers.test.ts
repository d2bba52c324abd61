import { expect, test } from "bun:test";
import recorded from "./sluice.json";
import { recordSluice } from "./record-sluice.ts";
import { peerRequests } from "./requests.ts";

// `npm run peers -- --record` writes what is sent now; look at the difference before you commit it.
test("what is sent for the requests that peers are compared by is what was recorded", async () => {
  expect(await recordSluice(peerRequests)).toEqual(recorded);
});

test("names are unique, and there are twice the requests of the first comparison", () => {
  const names = peerRequests.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThanOrEqual(66);
});
