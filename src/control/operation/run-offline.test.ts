import { afterEach, beforeEach, expect, test } from "bun:test";
import { AdminFixture, operator } from "../../../test/support/admin-fixture.ts";
import { createRunOffline, type OfflineAnswer, type OfflineRequest } from "./run-offline.ts";

let admin: AdminFixture;
let run: (request: Partial<OfflineRequest>) => Promise<OfflineAnswer>;
beforeEach(() => {
  admin = new AdminFixture();
  const call = {
    id: "req_offline",
    principal: operator,
    signal: new AbortController().signal,
    address: undefined,
  };
  const offline = createRunOffline(admin.services, admin.operations);
  run = (request) => offline({ method: "GET", path: "/admin/v1/keys", call, ...request });
});
afterEach(() => admin[Symbol.asyncDispose]());

test("requests find their operation by method and path, as over HTTP", async () => {
  const made = await run({ method: "POST", path: "/admin/v1/accounts", body: { name: "a" } });
  expect(made.status).toBe(201);
  const { id } = made.body as { id: string };
  const shown = await run({ path: `/admin/v1/accounts/${encodeURIComponent(id)}` });
  expect(shown).toEqual({ status: 200, body: made.body });
  const { items } = await admin.stores.control.read((view) => view.audit.list({}, { limit: 5 }));
  expect(items[0]).toMatchObject({ actor: { kind: "local" }, address: undefined });
});

test("exact paths are not mistaken for ids", async () => {
  const exported = await run({ path: "/admin/v1/usage/export", query: { format: "ndjson" } });
  expect(exported.body instanceof Response).toBe(true);
  expect((await run({ path: "/admin/v1/audit/verify" })).body).toMatchObject({ is_intact: true });
});

test("errors are answers of their status, in the shape of HTTP's", async () => {
  const missing = await run({ path: "/admin/v1/keys/key_none" });
  expect(missing).toEqual({
    status: 404,
    body: {
      error: {
        message: "This key does not exist.",
        type: "invalid_request_error",
        param: null,
        code: "not_found",
      },
    },
  });
  for (const path of ["/admin/v1/nothing", "/admin/v1/keys/%ff"]) {
    expect((await run({ path })).status).toBe(404);
  }
  expect((await run({ method: "DELETE", path: "/admin/v1/keys" })).status).toBe(405);
});

test("a change is made once for its idempotency key", async () => {
  const request = {
    method: "POST",
    path: "/admin/v1/accounts",
    body: { name: "a" },
    idempotencyKey: "k",
  };
  expect(await run(request)).toEqual(await run(request));
});
