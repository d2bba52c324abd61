import { afterAll, beforeAll, expect, test } from "bun:test";
import { createAdminPlane } from "../../src/process/control/admin-plane.ts";
import type { Route } from "../../src/edge/dispatch/route.ts";
import { adminRoutes } from "../../src/control/admin-routes.ts";
import { bearer, nobody, sendAs, type AdminAnswer, type Credential } from "./admin-caller.ts";
import { guarded, statusFor, unguarded, type Whose } from "./authorization-table.ts";
import { marker, openWorld, type Principal, type World } from "./authorization-world.ts";

let world: World;
let routes: readonly Route[];
let sent = 0;
beforeAll(async () => {
  world = await openWorld();
  const { app, config } = world.gateway;
  const { routes: control } = createAdminPlane({
    config,
    pid: process.pid,
    number: 1,
    services: app.admin,
    events: app.events,
    publicUrl: () => "",
    onBootstrapToken: () => undefined,
  });
  routes = adminRoutes({
    renderMetrics: () => "",
    whyNotReady: () => undefined,
    howDegraded: () => undefined,
    control,
  });
}, 180_000);
afterAll(async () => {
  process.stdout.write(`authorization: ${sent} requests\n`);
  await world[Symbol.asyncDispose]();
});

const nameOf = ({ method, path }: Pick<Route, "method" | "path">): string => `${method} ${path}`;

function send(
  route: Route,
  request: { readonly path: string; readonly body?: unknown },
  credential: Credential,
): Promise<AdminAnswer> {
  sent += 1;
  return sendAs(world.gateway.adminUrl, { method: route.method, ...request }, credential);
}

async function audited(): Promise<number> {
  const page = await world.gateway.app.admin.store.read((view) =>
    view.audit.list({}, { limit: 1 }),
  );
  return page.items[0]?.sequence ?? 0;
}

/** What of the other account an answer tells. */
function foreignIn({ text }: AdminAnswer): string | undefined {
  const { account, application, key, user, email, call } = world.other;
  return [marker, account, application, key, user, email, call].find((each) => text.includes(each));
}

/** What is wrong with an answer to somebody who may not see the other account. */
function leakIn(answer: AdminAnswer, principal: Principal): string | undefined {
  if (principal.name === "operator" || principal.name === "auditor") return undefined;
  const found = foreignIn(answer);
  return found === undefined ? undefined : `tells '${found}': ${answer.text.slice(0, 300)}`;
}

test("the table knows every route of the admin listener, and no other", () => {
  const known = [...guarded.keys(), ...unguarded.keys()];
  expect(known.toSorted()).toEqual(routes.map(nameOf).toSorted());
  for (const route of routes) {
    const isOpen = route.access === "public" || route.access === "anonymous";
    expect([nameOf(route), unguarded.has(nameOf(route))]).toEqual([nameOf(route), isOpen]);
  }
});

test("each route answers each principal as the table says, about its own and another account", async () => {
  const problems: string[] = [];
  for (const route of routes) {
    const row = guarded.get(nameOf(route));
    if (row === undefined) continue;
    for (const principal of world.principals) {
      for (const whose of ["own", "other"] satisfies Whose[]) {
        const statuses = row[whose];
        if (statuses === undefined) continue;
        const request = await row.prepare({ world, principal, of: world[whose] });
        const before = await audited();
        const answer = await send(route, request, request.as ?? principal.good);
        const what = `${nameOf(route)} as ${principal.name}, ${whose} account:`;
        const wanted = statusFor(statuses, principal.name);
        if (answer.status !== wanted) {
          problems.push(`${what} ${answer.status}, not ${wanted}: ${answer.text.slice(0, 300)}`);
        }
        if (answer.status >= 300 && (await audited()) !== before) {
          problems.push(`${what} changed something all the same`);
        }
        const leak = leakIn(answer, principal);
        if (leak !== undefined) problems.push(`${what} ${leak}`);
        // Or the search for what leaks would find nothing, whatever leaked.
        const isToTell = whose === "other" && route.method === "GET" && !route.path.includes("{");
        if (isToTell && principal.name === "operator" && foreignIn(answer) === undefined) {
          problems.push(`${what} tells an operator nothing`);
        }
      }
    }
  }
  expect(problems).toEqual([]);
}, 120_000);

interface Variant {
  readonly name: string;
  readonly credential: Credential;
  /** Undefined: as the table says of the principal. */
  readonly expected: readonly [number, string] | undefined;
}

const notSignedIn = [401, "not_signed_in"] as const;

/** All that can be wrong with how somebody shows who it is. */
function variantsOf({ good, isSession, bad }: Principal, isChange: boolean): readonly Variant[] {
  const { headers, changeHeaders } = good;
  const { origin = "", "x-csrf-token": csrf = "" } = changeHeaders;
  const foreign = "https://evil.example.com";
  const withHeaders = (more: Record<string, string>): Credential => ({
    headers: { ...headers, ...more },
    changeHeaders: { ...changeHeaders, ...more },
  });
  const ofSession: readonly Variant[] = [
    {
      name: "no CSRF token",
      credential: { headers, changeHeaders: { origin } },
      expected: isChange ? [403, "wrong_csrf_token"] : undefined,
    },
    {
      name: "another session's CSRF token",
      credential: { headers, changeHeaders: { origin, "x-csrf-token": `${csrf.slice(1)}A` } },
      expected: isChange ? [403, "wrong_csrf_token"] : undefined,
    },
    {
      name: "no origin",
      credential: { headers, changeHeaders: { "x-csrf-token": csrf } },
      expected: isChange ? [403, "wrong_origin"] : undefined,
    },
    {
      name: "a form's content type",
      credential: withHeaders({ "content-type": "application/x-www-form-urlencoded" }),
      expected: isChange ? [415, "unsupported_content_type"] : undefined,
    },
  ];
  return [
    { name: "none", credential: nobody, expected: notSignedIn },
    { name: "data-plane key", credential: bearer(world.gateway.key), expected: notSignedIn },
    { name: "nonsense", credential: bearer("sluice"), expected: notSignedIn },
    ...[...bad].map(([name, credential]) => ({ name, credential, expected: notSignedIn })),
    {
      name: "wrong origin",
      credential: withHeaders({ origin: foreign }),
      expected: [403, "wrong_origin"],
    },
    {
      name: "origin null",
      credential: withHeaders({ origin: "null" }),
      expected: [403, "wrong_origin"],
    },
    {
      name: "another site's page",
      credential: withHeaders({ "sec-fetch-site": "cross-site" }),
      expected: isChange ? [403, "wrong_origin"] : undefined,
    },
    ...(isSession ? ofSession : []),
  ];
}

test("whoever shows a spent, foreign or half a credential is refused by every route, and changes nothing", async () => {
  const problems: string[] = [];
  for (const route of routes) {
    const row = guarded.get(nameOf(route));
    if (row === undefined) continue;
    for (const principal of world.principals) {
      const request = await row.prepare({ world, principal, of: world.own });
      const before = await audited();
      for (const variant of variantsOf(principal, route.method !== "GET")) {
        const isTwin = request.as !== undefined && principal.isSession;
        const answer = await send(route, request, variant.credential);
        const what = `${nameOf(route)} as ${principal.name} with ${variant.name}:`;
        const [status, code] = variant.expected ?? [statusFor(row.own, principal.name), undefined];
        if (isTwin && variant.expected === undefined) throw new Error(`${what} is not told`);
        if (answer.status !== status || (code !== undefined && answer.code !== code)) {
          problems.push(`${what} ${answer.status} ${answer.text.slice(0, 300)}`);
        }
        const leak = leakIn(answer, principal);
        if (leak !== undefined) problems.push(`${what} ${leak}`);
      }
      if ((await audited()) !== before) problems.push(`${nameOf(route)}: something was changed`);
    }
  }
  expect(problems).toEqual([]);
}, 120_000);

test("routes before sign-in answer everybody alike, except pages of other origins", async () => {
  const problems: string[] = [];
  for (const route of routes) {
    const row = unguarded.get(nameOf(route));
    const [principal] = world.principals;
    if (row === undefined || principal === undefined) continue;
    const request = await row.prepare({ world, principal, of: world.own });
    const expectStatus = async (
      what: string,
      credential: Credential,
      wanted: number,
    ): Promise<void> => {
      const { status, text } = await send(route, request, credential);
      if (status !== wanted) problems.push(`${nameOf(route)} ${what}: ${status} ${text}`);
    };
    await expectStatus("as nobody", nobody, row.anonymous);
    const keyed = bearer(world.gateway.key);
    await expectStatus("with a data-plane key", keyed, row.anonymous);
    for (const { name, good, bad } of world.principals) {
      await expectStatus(`as ${name}`, good, row.anonymous);
      for (const [what, credential] of bad) await expectStatus(what, credential, row.anonymous);
    }
    const foreign = { headers: { origin: "https://evil.example.com" }, changeHeaders: {} };
    await expectStatus("of another origin", foreign, row.checksOrigin ? 403 : row.anonymous);
  }
  expect(problems).toEqual([]);
}, 180_000);

test("a credential of the control plane opens nothing of the data plane", async () => {
  const { gateway } = world;
  const local = await Bun.file(`${gateway.config.dataDir}/admin-access.json`).json();
  const sessions = world.principals.filter(({ isSession }) => isSession);
  const credentials = [
    ...world.principals.map(({ good }) => good.headers),
    ...sessions.map(({ good }) => bearer(good.headers["cookie"]?.split("=")[1] ?? "").headers),
    bearer((local as { token: string }).token).headers,
  ];
  for (const headers of credentials) {
    for (const path of ["/v1/models", "/v1/chat/completions", "/v1/embeddings"]) {
      const method = path === "/v1/models" ? "GET" : "POST";
      const response = await fetch(gateway.url + path, { method, headers });
      const text = await response.text();
      expect([path, response.status, text.includes("invalid_api_key")]).toEqual([path, 401, true]);
    }
  }
  // Of the data listener, no path leads to the control plane.
  for (const route of routes.filter(({ path }) => path.startsWith("/admin"))) {
    const { path, method } = route;
    const [first] = world.principals;
    const response = await fetch(gateway.url + path, {
      method,
      headers: first?.good.headers ?? {},
    });
    expect([nameOf(route), response.status]).toEqual([nameOf(route), 404]);
  }
});
