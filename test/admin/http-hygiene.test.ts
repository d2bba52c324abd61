import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { errorShapeProblem } from "../http/error-shape.ts";
import { consolePaths, guarded, unguarded } from "./authorization-table.ts";
import { openWorld, type Principal, type World } from "./authorization-world.ts";

let world: World;
let operator: Principal;
beforeAll(async () => {
  world = await openWorld({ http: `{ body_limit: 64KiB, allowed_origins: ["*"] }` });
  const [first] = world.principals;
  if (first === undefined) throw new Error("there is no operator");
  operator = first;
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

type SentBody = string | Uint8Array<ArrayBuffer>;

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: SentBody;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

/** As the operator's console; every answer is looked at, whatever it is. */
async function send({ method, path, body, headers = {} }: Sent): Promise<Answer> {
  const { headers: cookies, changeHeaders } = operator.good;
  const response = await fetch(world.gateway.adminUrl + path, {
    method,
    redirect: "manual",
    headers: {
      ...cookies,
      ...(method !== "GET" && method !== "HEAD" && changeHeaders),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  });
  const text = await response.text();
  const problem = headerProblem(response.headers);
  if (problem !== undefined) throw new Error(`${method} ${path} ${response.status}: ${problem}`);
  const isError = response.status >= 400 && method !== "HEAD" && !path.endsWith("/readyz");
  const shape = isError ? errorShapeProblem(response.headers, text) : undefined;
  if (shape !== undefined) throw new Error(`${method} ${path} ${response.status}: ${shape}`);
  return { status: response.status, text, headers: response.headers };
}

function headerProblem(headers: Headers): string | undefined {
  const expected: Readonly<Record<string, RegExp>> = {
    "cache-control": /^no-store$/,
    "x-content-type-options": /^nosniff$/,
    "referrer-policy": /^no-referrer$/,
    "content-security-policy": /^default-src 'none';.*frame-ancestors 'none'/,
    "x-request-id": /^req_[0-9a-f]{32}$/,
  };
  for (const [name, pattern] of Object.entries(expected)) {
    if (!pattern.test(headers.get(name) ?? "")) return `${name}: ${headers.get(name)}`;
  }
  if (/script-src|unsafe-inline|unsafe-eval/.test(headers.get("content-security-policy") ?? "")) {
    return "scripts may run";
  }
  for (const name of headers.keys()) {
    if (name.startsWith("access-control-")) return `it has ${name}`;
    if (name === "server" || name === "x-powered-by") return `it tells its ${name}`;
  }
  return undefined;
}

interface KnownRoute {
  readonly method: string;
  readonly template: string;
}

/** All but those of the console, which has headers of its own. */
function knownRoutes(): readonly KnownRoute[] {
  return [...guarded.keys(), ...unguarded.keys()]
    .map((name) => {
      const [method = "", template = ""] = name.split(" ");
      return { method, template };
    })
    .filter(({ template }) => !consolePaths.includes(template));
}

const filled = (template: string): string => template.replace("{id}", "nothing_here");

test("answers of every route, good and bad, are kept by no cache and run nothing", async () => {
  const statuses = new Set<number>();
  for (const { method, template } of knownRoutes()) {
    const name = `${method} ${template}`;
    const { prepare } = guarded.get(name) ?? unguarded.get(name) ?? {};
    const request = await prepare?.({ world, principal: operator, of: world.own });
    if (request === undefined) throw new Error(name);
    const headers = { ...request.as?.headers, ...request.as?.changeHeaders };
    const body = request.body === undefined ? {} : { body: JSON.stringify(request.body) };
    const good = await send({ method, path: request.path, headers, ...body });
    const foreign = { origin: "https://evil.example.com" };
    const bad = await send({ method, path: filled(template), headers: foreign });
    statuses.add(good.status).add(bad.status);
    if (method === "GET" && template.startsWith("/admin")) {
      statuses.add((await send({ method, path: `${request.path}/nothing` })).status);
    }
  }
  expect([...statuses].every((status) => status < 500)).toBe(true);
  for (const status of [200, 201, 400, 403, 404]) expect(statuses).toContain(status);
});

test("no origin is let in by a preflight, whatever the data plane allows", async () => {
  for (const { method, template } of knownRoutes()) {
    const headers = {
      origin: "https://evil.example.com",
      "access-control-request-method": method,
      "access-control-request-headers": "x-csrf-token, content-type",
    };
    const path = filled(template);
    const { status, text, headers: answered } = await send({ method: "OPTIONS", path, headers });
    expect([path, status, text]).toEqual([path, 204, ""]);
    expect(answered.get("allow")?.split(", ")).toContain(method);
  }
  const unknown = await send({ method: "OPTIONS", path: "/admin/v1/nothing" });
  expect(unknown.status).toBe(404);
  const open = await fetch(`${world.gateway.url}/healthz`, {
    headers: { origin: "https://any.example.com" },
  });
  expect(open.headers.get("access-control-allow-origin")).toBe("*");
});

test("HEAD says what GET says, without a body", async () => {
  for (const { method, template } of knownRoutes()) {
    if (method !== "GET" || template === "/admin/v1/audit/verify") continue;
    const name = `GET ${template}`;
    const { prepare } = guarded.get(name) ?? unguarded.get(name) ?? {};
    const request = await prepare?.({ world, principal: operator, of: world.own });
    if (request === undefined) throw new Error(name);
    const get = await send({ method: "GET", path: request.path });
    const head = await send({ method: "HEAD", path: request.path });
    expect([name, head.status, head.text]).toEqual([name, get.status, ""]);
    expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"));
  }
});

test("unknown paths and methods get 404 and 405 that speak of the admin API", async () => {
  const paths = [
    "/admin",
    "/admin/v1",
    "/admin/v2/keys",
    "/admin/v1/keys/a/b",
    "/admin/v1/keys/a/rotate/b",
    "/admin/v1/keys/%zz",
    "/v1/models",
    "/v1/chat/completions",
    "/admin/v1/KEYS",
    "/nothing",
  ];
  for (const path of paths) {
    const { status, text } = await send({ method: "GET", path });
    expect([path, status]).toEqual([path, 404]);
    expect(text).toContain("admin API");
  }
  const templates = new Set(knownRoutes().map(({ template }) => template));
  for (const template of templates) {
    const known = knownRoutes().filter((route) => route.template === template);
    const allowed = known.map(({ method }) => method);
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      if (allowed.includes(method)) continue;
      const { status, headers } = await send({ method, path: filled(template) });
      expect([method, template, status]).toEqual([method, template, 405]);
      const named = headers.get("allow")?.split(", ") ?? [];
      expect(named.toSorted()).toEqual([...allowed, "OPTIONS"].toSorted());
    }
  }
});

const deep = (levels: number): string => `{"name":${"[".repeat(levels)}${"]".repeat(levels)}}`;

const spoiled: readonly {
  readonly what: string;
  readonly body: SentBody;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expected: readonly [number, string | null];
}[] = [
  { what: "no JSON", body: "{name: 1}", expected: [400, null] },
  { what: "half of JSON", body: `{"name":"a`, expected: [400, null] },
  { what: "two values", body: "{}{}", expected: [400, null] },
  { what: "a name twice", body: `{"name":"a","name":"b"}`, expected: [400, null] },
  {
    what: "a name twice, once escaped",
    body: String.raw`{"name":"a","n\u0061me":"b"}`,
    expected: [400, null],
  },
  { what: "__proto__", body: `{"__proto__":{"role":"x"}}`, expected: [400, null] },
  {
    what: "half of a surrogate pair",
    body: String.raw`{"name":"\ud800"}`,
    expected: [400, null],
  },
  { what: "depth of 33", body: deep(33), expected: [400, null] },
  { what: "depth of 30,000", body: deep(30_000), expected: [400, null] },
  {
    what: "bytes that are no UTF-8",
    body: Buffer.from([0x22, 0xff, 0x22]),
    expected: [400, null],
  },
  { what: "a list", body: "[]", expected: [400, "invalid_type"] },
  { what: "a text", body: `"name"`, expected: [400, "invalid_type"] },
  {
    what: "a body over the limit",
    body: `"${"x".repeat(70_000)}"`,
    expected: [413, "request_too_large"],
  },
  {
    what: "a bomb",
    body: gzipSync(Buffer.alloc(20_000_000, " ")),
    headers: { "content-encoding": "gzip" },
    expected: [413, "request_too_large"],
  },
  {
    what: "another encoding",
    body: "{}",
    headers: { "content-encoding": "rot13" },
    expected: [415, "unsupported_content_type"],
  },
  {
    what: "a form",
    body: "name=a",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    expected: [415, "unsupported_content_type"],
  },
  {
    what: "plain text",
    body: `{"name":"a"}`,
    headers: { "content-type": "text/plain" },
    expected: [415, "unsupported_content_type"],
  },
];

test.each(spoiled)(
  "a body that is $what is refused by every change",
  async ({ body, headers = {}, expected }) => {
    for (const { method, template } of knownRoutes()) {
      if (method === "GET") continue;
      const name = `${method} ${template}`;
      // Ending a session takes no body and reads none.
      if (name === "DELETE /admin/v1/session") continue;
      // The data plane reads these bodies: test/live/playground.test.ts.
      if (template.includes("/playground/")) continue;
      const { status, text } = await send({ method, path: filled(template), body, headers });
      const { error } = JSON.parse(text) as { error: { code: string | null } };
      expect([name, status, error.code]).toEqual([name, ...expected]);
    }
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain("role");
  },
);

/** What these readings cannot do without. */
const neededQueries: Readonly<Record<string, string>> = {
  "/admin/v1/live": "topics=key&",
  "/admin/v1/choices": "of=plans&",
  "/admin/v1/accounts/{id}/statement": "month=2026-11&",
};

test("a query that names something twice, or something unknown, is refused by every reading", async () => {
  for (const { method, template } of knownRoutes()) {
    if (method !== "GET" || !guarded.has(`GET ${template}`)) continue;
    if (template === "/admin/v1/session") continue;
    for (const query of ["limit=1&limit=2", "zebra=1", "__proto__=1"]) {
      const needed = neededQueries[template] ?? "";
      const path = `${filled(template)}?${needed}${query}`;
      const { status, text } = await send({ method, path });
      const { error } = JSON.parse(text) as { error: { param: string } };
      const [param = ""] = query.split("=");
      expect([template, query, status, error.param]).toEqual([template, query, 400, param]);
    }
  }
});
