import { expect, test } from "bun:test";
import { AdminRefusal } from "../client/admin-client.ts";
import { receiptNotes } from "./receipt.ts";

const replicas = [
  { name: "gw-a", admin_url: "http://10.0.0.1:8081", live: true, silent_ms: 5, keys_epoch: 7 },
  { name: "gw-b", admin_url: "http://10.0.0.2:8081", live: true, silent_ms: 5, keys_epoch: 6 },
  {
    name: "gw-c",
    admin_url: "http://10.0.0.3:8081",
    live: false,
    silent_ms: 65_000,
    keys_epoch: 2,
  },
];

function notesOf(
  applied: object | undefined,
  request: () => Promise<unknown> = () => Promise.resolve({ data: replicas }),
): Promise<readonly string[]> {
  return receiptNotes({ isOffline: false, request }, { applied });
}

const advice =
  "To stop a key there, refuse it in the proxy, or end that gateway. Until then it may accept the " +
  "keys it knew, at most for auth.snapshot_max_age. Look at `sluice replicas`, and repeat this " +
  "command to ask again.";

test("a receipt of all gateways needs no advice", async () => {
  const never = (): never => {
    throw new Error("nobody has to be named");
  };
  expect(await notesOf({ replicas: 3, of: 3, silent: 0 }, never)).toEqual([
    "3 of 3 replicas have applied it.",
  ]);
  expect(await notesOf({ replicas: 1, of: 1, silent: 0 }, never)).toEqual([
    "1 of 1 replica has applied it.",
  ]);
});

test("gateways that are late or silent are named, with what to do about them", async () => {
  expect(await notesOf({ replicas: 1, of: 2, silent: 1 })).toEqual([
    "1 of 2 replicas have applied it.",
    "Warning: not applied by 1 replica: gw-b (http://10.0.0.2:8081).",
    "Warning: no sign of 1 replica: gw-c (http://10.0.0.3:8081, silent for 1 min 5 s).",
    advice,
  ]);
  expect(await notesOf({ replicas: 2, of: 2, silent: 1 })).toContain(advice);
});

test("they are counted if they cannot be named", async () => {
  const refused = () =>
    Promise.reject(new AdminRefusal({ status: 403, code: "not_permitted", message: "no" }));
  expect(await notesOf({ replicas: 1, of: 3, silent: 2 }, refused)).toEqual([
    "1 of 3 replicas have applied it.",
    "Warning: not applied by 2 replicas.",
    "Warning: no sign of 2 replicas.",
    advice,
  ]);
});

test("nothing is claimed when nobody could count", async () => {
  expect((await notesOf(undefined)).join(" ")).toContain("could not tell how many");
  const offline = { isOffline: true, request: () => Promise.reject(new Error("not asked")) };
  expect((await receiptNotes(offline, {})).join(" ")).toContain("unless they are cut off");
});
