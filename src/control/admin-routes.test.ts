import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { AdminFixture, operator } from "../../test/support/admin-fixture.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { AdminCall, Route } from "../edge/dispatch/route.ts";
import type { Reply } from "../edge/replies/error-reply.ts";
import { StorageUnavailable } from "../store/errors.ts";
import { adminApiRoutes } from "./admin-routes.ts";
import { adminOperations } from "./operations.ts";
import { Passwords } from "./sign-in/guard/passwords.ts";

let admin: AdminFixture;
let routes: readonly Route[];
beforeEach(() => {
  admin = new AdminFixture();
  routes = adminApiRoutes(admin.services, admin.operations);
});
afterEach(() => admin[Symbol.asyncDispose]());

interface Sent {
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls a route as the dispatch does after authentication. */
async function send(method: string, path: string, sent: Sent = {}): Promise<Reply> {
  const route = routes.find((candidate) => candidate.method === method && candidate.path === path);
  if (route?.access !== "principal") throw new Error(`${method} ${path} is no operation`);
  const request = new Request(`http://127.0.0.1${path}`, { method, headers: sent.headers ?? {} });
  const call: AdminCall = {
    id: "req_1",
    request,
    signal: request.signal,
    receivedAt: 0,
    parameter: "",
    isStillSignedIn: async () => true,
    principal: operator,
    address: "192.0.2.1",
    parameters: sent.parameters ?? {},
    query: new URLSearchParams(sent.query),
    readBody: () => Promise.resolve(Buffer.from(sent.body ?? "")),
  };
  return route.handle(call);
}

async function refusal(reply: Promise<Reply>): Promise<GatewayError> {
  try {
    await reply;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was not refused");
}

describe("routes of operations", () => {
  test("have the roles and the scope of their operation", () => {
    for (const { method, path, roles, scope } of admin.operations) {
      const route = routes.find((other) => other.method === method && other.path === path);
      expect(route).toMatchObject({ access: "principal", roles, scope });
    }
  });

  test("mark a replayed answer, with the same bytes", async () => {
    const sent = { body: '{"name":"a"}', headers: { "idempotency-key": "k" } };
    const first = await send("POST", "/admin/v1/accounts", sent);
    const again = await send("POST", "/admin/v1/accounts", sent);
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect([again.status, again.body]).toEqual([first.status, first.body]);
  });

  test("refuse a repeated parameter and an ambiguous body", async () => {
    const query = "limit=1&limit=2";
    expect((await refusal(send("GET", "/admin/v1/keys", { query }))).param).toBe("limit");
    const body = '{"name":"a","name":"b"}';
    expect((await refusal(send("POST", "/admin/v1/accounts", { body }))).status).toBe(400);
    const list = await refusal(send("POST", "/admin/v1/accounts", { body: "[]" }));
    expect(list.message).toBe("The body must be a JSON object.");
  });

  test("stream a download under a file name", async () => {
    const reply = await send("GET", "/admin/v1/usage/export", { query: "format=ndjson" });
    expect(reply.headers).toEqual({
      "content-type": "application/x-ndjson",
      "content-disposition": 'attachment; filename="sluice-usage.ndjson"',
    });
    expect(reply.body).toBeInstanceOf(ReadableStream);
  });
});

describe("unavailable storage", () => {
  test("is a 503 with retry-after, for reads, changes and downloads", async () => {
    await admin[Symbol.asyncDispose]();
    for (const reply of [
      send("GET", "/admin/v1/keys"),
      send("POST", "/admin/v1/accounts", { body: '{"name":"a"}' }),
      send("POST", "/admin/v1/accounts", {
        body: '{"name":"a"}',
        headers: { "idempotency-key": "k" },
      }),
      send("GET", "/admin/v1/usage/export"),
    ]) {
      const error = await refusal(reply);
      expect([error.status, error.code]).toEqual([503, "storage_unavailable"]);
      expect(error.headers["retry-after"]).toBe("1");
      expect(error.message).not.toContain("SQL");
    }
  });

  test("does not undo a change when the reload of keys fails", async () => {
    const services = {
      ...admin.services,
      onKeysChanged: () => Promise.reject(new StorageUnavailable("gone")),
    };
    routes = adminApiRoutes(services, adminOperations({ ...services, passwords: new Passwords() }));
    const { id } = await admin.application("owner");
    const body = JSON.stringify({ application_id: id, plan: "standard" });
    expect((await send("POST", "/admin/v1/keys", { body })).status).toBe(201);
  });
});
