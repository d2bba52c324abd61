import { expect, test } from "bun:test";
import { AdminRefusal } from "../client/admin-client.ts";
import { receiptNotes } from "./receipt.ts";

const processes = [
  {
    name: "gw-a",
    number: 1,
    admin_url: "http://10.0.0.1:8081",
    live: true,
    silent_ms: 5,
    keys_epoch: 7,
  },
  {
    name: "gw-b",
    number: 2,
    admin_url: "http://10.0.0.2:8081",
    live: true,
    silent_ms: 5,
    keys_epoch: 6,
  },
  {
    name: "gw-c",
    number: 1,
    admin_url: "",
    live: false,
    silent_ms: 65_000,
    keys_epoch: 2,
  },
];

function notesOf(
  applied: object | undefined,
  request: () => Promise<unknown> = () => Promise.resolve({ data: processes }),
): Promise<readonly string[]> {
  return receiptNotes({ isOffline: false, request }, { applied });
}

const advice =
  "To stop a key there, refuse it in the proxy, or end that process. Until then it may accept the " +
  "keys it knew, at most for auth.snapshot_max_age. Look at `sluice processes`, and repeat this " +
  "command to ask again.";

test("a receipt of all processes needs no advice", async () => {
  const never = (): never => {
    throw new Error("nobody has to be named");
  };
  expect(await notesOf({ processes: 3, of: 3, silent: 0 }, never)).toEqual([
    "3 of 3 processes have applied it.",
  ]);
  expect(await notesOf({ processes: 1, of: 1, silent: 0 }, never)).toEqual([
    "1 of 1 process has applied it.",
  ]);
});

test("processes that are late or silent are named, with what to do about them", async () => {
  expect(await notesOf({ processes: 1, of: 2, silent: 1 })).toEqual([
    "1 of 2 processes have applied it.",
    "Warning: not applied by 2 processes: 2 of gw-b (http://10.0.0.2:8081), 1 of gw-c, silent for 1 min 5 s.",
    advice,
  ]);
  expect(await notesOf({ processes: 2, of: 2, silent: 1 })).toContain(advice);
});

test("they are counted if they cannot be named", async () => {
  const refused = () =>
    Promise.reject(new AdminRefusal({ status: 403, code: "not_permitted", message: "no" }));
  expect(await notesOf({ processes: 1, of: 3, silent: 2 }, refused)).toEqual([
    "1 of 3 processes have applied it.",
    "Warning: not applied by 4 processes.",
    advice,
  ]);
});

test("nothing is claimed when nobody could count", async () => {
  expect((await notesOf(undefined)).join(" ")).toContain("could not tell how many");
  const offline = { isOffline: true, request: () => Promise.reject(new Error("not asked")) };
  expect((await receiptNotes(offline, {})).join(" ")).toContain("unless they are cut off");
});
