import { afterEach, describe, expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { callerOf, snapshotOf } from "../../../test/support/pipeline-fixtures.ts";
import { openAiDialect } from "../../dialects/openai-dialect.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { createNetworkList } from "../../domain/network.ts";
import type { Principal } from "../../domain/principal.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import type { AdminGate, DispatchOptions } from "./dispatch-options.ts";
import { CorsPolicy } from "../cors.ts";
import { createDispatch } from "./dispatch.ts";
import { listen, type Listener } from "../listen.ts";
import { jsonReply, type Reply } from "../replies/error-reply.ts";
import type { AnonymousAdminCall, KeyCall, Route } from "./route.ts";
import { RouteTable } from "./route-table.ts";
import { bodyLimitsOf } from "../../../test/support/body-limits.ts";

let listeners: Listener[] = [];

afterEach(async () => {
  for (const listener of listeners) await listener.cut();
  listeners = [];
});

const operator: Principal = {
  kind: "session",
  userId: "user_a",
  name: "ada@example.com",
  role: "operator",
  accountId: undefined,
  scopes: ["read", "write"],
};

/** Lets in whom `x-role` names; the address it was told is in `seen`. */
class HeaderGate implements AdminGate {
  readonly seen: string[] = [];

  identify({ request, address }: Parameters<AdminGate["identify"]>[0]): Promise<Principal> {
    this.seen.push(address);
    const role = request.headers.get("x-role");
    if (role === null) {
      const message = "Please sign in.";
      return Promise.reject(new GatewayError("not_signed_in", { message }));
    }
    const isAuditor = role === "auditor";
    return Promise.resolve({
      ...operator,
      role: isAuditor ? "auditor" : "operator",
      accountId: isAuditor ? "acct_a" : undefined,
      scopes: request.headers.get("x-scopes") === "read" ? ["read"] : operator.scopes,
    });
  }

  isStill(): Promise<boolean> {
    return Promise.resolve(true);
  }

  checkHost(): void {}

  checkAnonymous({ request, address }: Parameters<AdminGate["checkAnonymous"]>[0]): void {
    this.seen.push(address);
    if (request.headers.get("origin") === "https://elsewhere.example") {
      throw new GatewayError("wrong_origin", { message: "Not from there." });
    }
  }
}

async function show(call: AnonymousAdminCall): Promise<Reply> {
  const body = new TextDecoder().decode(await call.readBody());
  const { parameters, address } = call;
  return jsonReply({ parameters, address, query: call.query.toString(), body });
}

const adminRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/admin/v1/keys/{id}",
    access: "principal",
    roles: ["operator", "auditor"],
    scope: "read",
    handle: show,
  },
  ...(["PATCH", "DELETE"] as const).map((method): Route => ({
    method,
    path: "/admin/v1/keys/{id}",
    access: "principal",
    roles: ["operator"],
    scope: "write",
    handle: async (call) => {
      const reply = await show(call);
      return { ...reply, headers: { ...reply.headers, "x-by": call.principal.name } };
    },
  })),
  { method: "POST", path: "/admin/v1/session", access: "anonymous", handle: show },
  {
    method: "GET",
    path: "/admin/v1/docs",
    access: "anonymous",
    handle: () => ({
      status: 200,
      headers: {
        "content-type": "text/html",
        "content-security-policy": "default-src 'self'",
        "cache-control": "public",
      },
      body: "<p>",
    }),
  },
];

const emptySnapshot = {
  ...snapshotOf(["up"]),
  defaultEnvironment: { name: "test", models: new Map() },
};

function start(options: Partial<DispatchOptions> = {}) {
  const handled: HandledRequest[] = [];
  const gate = new HeaderGate();
  const clock = new ManualClock({ wallMs: 5_000 });
  let requests = 0;
  const edge = {
    cors: new CorsPolicy([]),
    bodyLimits: bodyLimitsOf(),
    maxHeaders: 100,
    trustedProxies: createNetworkList(["127.0.0.0/8"]),
  };
  const handle = createDispatch({
    routes: new RouteTable(adminRoutes, "admin"),
    clock,
    newRequestId: () => `req_${(requests += 1)}`,
    keyed: { snapshot: () => emptySnapshot, authenticate: () => () => callerOf() },
    gate,
    edge: () => edge,
    shutdown: { closesConnections: false, isRefusing: false },
    onHandled: (event) => handled.push(event),
    ...options,
  });
  const listener = listen({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeoutMs: 5_000,
    handle,
    onError: () => new Response(null, { status: 500 }),
  });
  listeners.push(listener);
  const ask = (path: string, init: RequestInit = {}) => fetch(listener.url + path, init);
  return { ask, handled, gate };
}

const asOperator = { "x-role": "operator" };

async function codeOf(response: Response): Promise<unknown> {
  const { error } = (await response.json()) as { error: { code: unknown } };
  return [response.status, error.code];
}

describe("the control plane", () => {
  test("a handler gets parameters, query, body, address and who asks", async () => {
    const { ask } = start();
    const read = await ask("/admin/v1/keys/a%20b?limit=5&x=%20", { headers: asOperator });
    expect(await read.json()).toEqual({
      parameters: { id: "a b" },
      address: "127.0.0.1",
      query: "limit=5&x=+",
      body: "",
    });
    const changed = await ask("/admin/v1/keys/key_1", {
      method: "PATCH",
      headers: { ...asOperator, "content-type": "application/json" },
      body: '{"revision":1}',
    });
    expect(await changed.json()).toMatchObject({ body: '{"revision":1}' });
    expect(changed.headers.get("x-by")).toBe("ada@example.com");
  });

  test("a DELETE or a POST needs no body, and then no content type", async () => {
    const { ask } = start();
    const deleted = await ask("/admin/v1/keys/key_1", { method: "DELETE", headers: asOperator });
    expect(await deleted.json()).toMatchObject({ body: "" });
    expect((await ask("/admin/v1/session", { method: "POST" })).status).toBe(200);
  });

  test("a body is JSON, and of one MiB at most, plain or compressed", async () => {
    const { ask } = start();
    const send = (body: RequestInit["body"], headers: Record<string, string>) =>
      ask("/admin/v1/session", { method: "POST", headers, body: body ?? null });
    const json = { "content-type": "application/json" };
    expect((await send("{}", { "content-type": "text/plain" })).status).toBe(415);
    expect((await send("x".repeat(1_048_576), json)).status).toBe(200);
    expect((await send("x".repeat(1_048_577), json)).status).toBe(413);
    const bomb = Bun.gzipSync(new Uint8Array(2_000_000));
    expect((await send(bomb, { ...json, "content-encoding": "gzip" })).status).toBe(413);
  });

  test("without a principal no handler runs", async () => {
    const { ask } = start();
    expect(await codeOf(await ask("/admin/v1/keys/key_1"))).toEqual([401, "not_signed_in"]);
  });

  test("role and scope are checked before the handler, and the refusal is explained", async () => {
    const { ask, handled } = start();
    const asAuditor = { "x-role": "auditor" };
    const remove = (headers: Record<string, string>) =>
      ask("/admin/v1/keys/key_1", { method: "DELETE", headers });
    expect((await ask("/admin/v1/keys/key_1", { headers: asAuditor })).status).toBe(200);
    expect(await codeOf(await remove(asAuditor))).toEqual([403, "not_permitted"]);
    expect(await codeOf(await remove({ ...asOperator, "x-scopes": "read" }))).toEqual([
      403,
      "not_permitted",
    ]);
    expect(handled.map(({ refusal }) => refusal?.explanation.rule)).toEqual([
      undefined,
      "not_permitted",
      "not_permitted",
    ]);
    expect(handled[1]?.refusal).toMatchObject({
      id: "req_2",
      at: 5_000,
      status: 403,
      code: "not_permitted",
      explanation: { accountId: "acct_a" },
    });
  });

  test("requests before sign-in pass the gate as well", async () => {
    const { ask } = start();
    const headers = { origin: "https://elsewhere.example" };
    const response = await ask("/admin/v1/session", { method: "POST", headers });
    expect(await codeOf(response)).toEqual([403, "wrong_origin"]);
  });

  test("every answer, errors too, says that it is neither kept nor embedded nor guessed at", async () => {
    const { ask } = start();
    const answers = [
      await ask("/admin/v1/keys/key_1", { headers: asOperator }),
      await ask("/admin/v1/keys/key_1"),
      await ask("/admin/v1/nothing"),
      await ask("/admin/v1/docs"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 200]);
    for (const { headers } of answers) {
      expect([
        headers.get("cache-control"),
        headers.get("x-content-type-options"),
        headers.get("referrer-policy"),
      ]).toEqual(["no-store", "nosniff", "no-referrer"]);
      expect(headers.get("x-request-id")).toMatch(/^req_/);
    }
    const policies = answers.map(({ headers }) => headers.get("content-security-policy"));
    const strict = "default-src 'none'; frame-ancestors 'none'";
    expect(policies).toEqual([strict, strict, strict, "default-src 'self'"]);
  });

  test("the address is the one that trusted proxies tell", async () => {
    const { ask, gate } = start();
    const headers = { ...asOperator, "x-forwarded-for": "198.51.100.1, 203.0.113.9" };
    expect(await (await ask("/admin/v1/keys/key_1", { headers })).json()).toMatchObject({
      address: "203.0.113.9",
    });
    expect(gate.seen).toEqual(["203.0.113.9"]);
  });

  test("the log learns the route's path, not the caller's", async () => {
    const { ask, handled } = start();
    await ask("/admin/v1/keys/key_1", { headers: asOperator });
    await ask("/admin/v1/secret-guess");
    expect(handled.map(({ route }) => route)).toEqual(["/admin/v1/keys/{id}", "other"]);
  });

  test("without a gate its routes cannot be served at all", () => {
    expect(() => start({ gate: undefined })).toThrow("needs a gate");
  });
});

describe("the data plane", () => {
  const keyed = (handle: (call: KeyCall) => Reply): RouteTable =>
    new RouteTable([
      {
        method: "GET",
        path: "/v1/models",
        access: "key",
        dialect: openAiDialect,
        counts: "listing",
        handle,
      },
    ]);
  const refuse = (explanation: GatewayError["explanation"]): (() => never) => {
    return () => {
      const details = { message: "No.", ...(explanation !== undefined && { explanation }) };
      throw new GatewayError("model_unavailable", details);
    };
  };

  test("has none of the control plane's headers", async () => {
    const { ask } = start({ routes: keyed(() => jsonReply({})) });
    const { headers } = await ask("/v1/models");
    expect(headers.get("cache-control")).toBeNull();
    expect(headers.get("content-security-policy")).toBeNull();
  });

  test("a refusal in the pipeline names the caller, and keeps what the pipeline says", async () => {
    const { ask, handled } = start({
      routes: keyed(
        refuse({ rule: "upstream", summary: "Away.", model: "alpha-sonnet-4", environment: "x" }),
      ),
    });
    await ask("/v1/models");
    expect(handled[0]?.refusal?.explanation).toMatchObject({
      rule: "upstream",
      model: "alpha-sonnet-4",
      keyId: "key_a",
      publicId: "aaaaaaaa",
      application: "search",
      environment: "x",
    });
  });

  test("an error that explains nothing is no refusal", async () => {
    const { ask, handled } = start({ routes: keyed(refuse(undefined)) });
    await ask("/v1/models");
    expect([handled[0]?.error?.status, handled[0]?.refusal]).toEqual([503, undefined]);
  });

  test("while shutting down it is refused with the reason", async () => {
    const { ask, handled } = start({
      routes: keyed(() => jsonReply({})),
      shutdown: { closesConnections: true, isRefusing: true },
    });
    expect((await ask("/v1/models")).status).toBe(503);
    expect(handled[0]?.refusal?.explanation.rule).toBe("draining");
  });

  test("authentication may ask for the address, and is told the trusted one", async () => {
    const addresses: string[] = [];
    const { ask } = start({
      routes: keyed(() => jsonReply({})),
      keyed: {
        snapshot: () => emptySnapshot,
        authenticate: () => (_text, _environment, address) => {
          addresses.push(address());
          return callerOf();
        },
      },
    });
    await ask("/v1/models", { headers: { "x-forwarded-for": "203.0.113.9" } });
    await ask("/v1/models");
    expect(addresses).toEqual(["203.0.113.9", "127.0.0.1"]);
  });
});
