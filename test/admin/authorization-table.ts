import { consoleSections } from "../../src/control/console/console.ts";
import type { AdminRequest, Credential } from "./admin-caller.ts";
import {
  password,
  principalNames,
  type Belongings,
  type Principal,
  type PrincipalName,
  type World,
} from "./authorization-world.ts";

/** Whose things a request is about. */
export type Whose = "own" | "other";

export interface Asked {
  readonly world: World;
  readonly principal: Principal;
  readonly of: Belongings;
}

/** A request, and who sends it when that is not the principal's usual credential. */
export type Prepared = Pick<AdminRequest, "path" | "body"> & { readonly as?: Credential };

type Prepare = (asked: Asked) => Prepared | Promise<Prepared>;

/** What one route answers to whom. */
export interface RouteCase {
  readonly prepare: Prepare;
  /** Statuses in the order of `principalNames`; about the principal's own account. */
  readonly own: string;
  /** About another account; undefined where a request is about no account. */
  readonly other: string | undefined;
}

export interface OpenCase {
  readonly prepare: Prepare;
  readonly anonymous: number;
  /** False for pages that machines read and that tell nothing of accounts. */
  readonly checksOrigin: boolean;
}

export function statusFor(row: string, name: PrincipalName): number {
  const status = Number(row.split(" ")[principalNames.indexOf(name)]);
  if (!(status > 0)) throw new Error(`the row '${row}' has no status for ${name}`);
  return status;
}

// In the order: operator, holder, auditor, auditor of one account, read token, token.
const read = { own: "200 200 200 200 200 200", other: "200 404 200 404 404 404" };
/** A list that asks for another account is empty for who may not see it. */
const list = { own: "200 200 200 200 200 200", other: "200 200 200 200 200 200" };
const managed = { own: "200 200 403 403 403 200", other: "200 404 403 403 403 404" };
const made = { own: "201 201 403 403 403 201", other: "201 404 403 403 403 404" };
const operated = { own: "200 403 403 403 403 403", other: "200 403 403 403 403 403" };
const overseen = { own: "200 403 200 200 403 403", other: "200 403 200 404 403 403" };

const p = "/admin/v1";
let names = 0;
const newName = (): string => `thing ${(names += 1)}`;

const at =
  (path: string): Prepare =>
  () => ({ path: p + path });
const inAccount =
  (path: string, more = ""): Prepare =>
  ({ of }) => ({ path: `${p}${path}?account_id=${of.account}${more}` });

async function newAccount({ world, of }: Asked): Promise<{ id: string; name: string }> {
  const name = `${of.name} ${newName()}`;
  return { name, id: (await world.make("POST", "/accounts", { name })).id };
}

async function newApplication({ world, of }: Asked): Promise<string> {
  const body = { account_id: of.account, environment: "test", name: `${of.name} ${newName()}` };
  return (await world.make("POST", "/applications", body)).id;
}

async function newKey({ world, of }: Asked): Promise<string> {
  const body = { application_id: of.application, plan: "standard" };
  return (await world.make("POST", "/keys", body)).key.id;
}

/** Of an operator, for a new application: an account has at most 20. */
async function newBudget(asked: Asked): Promise<string> {
  const application = await newApplication(asked);
  const body = { application_id: application, limit_usd: "5", period: "month" };
  return (await asked.world.make("POST", "/budgets", body)).id;
}

/** The public id of the older secret of a rotated key. */
async function olderSecret({ world }: Asked, key: string): Promise<string> {
  const { secrets } = (await world.make("POST", `/keys/${key}/rotate`, {})).key;
  return secrets[1]?.public_id ?? "";
}

const accounts: Readonly<Record<string, RouteCase>> = {
  "POST /admin/v1/accounts": {
    prepare: () => ({ path: `${p}/accounts`, body: { name: newName() } }),
    own: "201 403 403 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/accounts": {
    prepare: ({ of }) => ({ path: `${p}/accounts?name=${of.name}` }),
    ...list,
  },
  "GET /admin/v1/accounts/{id}": {
    prepare: ({ of }) => ({ path: `${p}/accounts/${of.account}` }),
    ...read,
  },
  "PATCH /admin/v1/accounts/{id}": {
    prepare: async (asked) => {
      const { id } = await newAccount(asked);
      return { path: `${p}/accounts/${id}`, body: { revision: 1, note: "n" } };
    },
    ...operated,
  },
  "DELETE /admin/v1/accounts/{id}": {
    prepare: async (asked) => ({ path: `${p}/accounts/${(await newAccount(asked)).id}` }),
    ...operated,
  },
  "POST /admin/v1/accounts/{id}/end-users": {
    prepare: ({ of }) => ({
      path: `${p}/accounts/${of.account}/end-users`,
      body: { names: ["jane"] },
    }),
    ...managed,
  },
  "POST /admin/v1/accounts/{id}/erase-end-user": {
    prepare: ({ of }) => ({
      path: `${p}/accounts/${of.account}/erase-end-user`,
      body: { name: "jane" },
    }),
    ...managed,
  },
  "POST /admin/v1/accounts/{id}/erase": {
    prepare: async (asked) => {
      const { id, name } = await newAccount(asked);
      return { path: `${p}/accounts/${id}/erase`, body: { confirm: name } };
    },
    ...operated,
  },
  "POST /admin/v1/applications": {
    prepare: ({ of }) => ({
      path: `${p}/applications`,
      body: { account_id: of.account, environment: "test", name: newName() },
    }),
    ...made,
  },
  "GET /admin/v1/applications": { prepare: inAccount("/applications"), ...list },
  "GET /admin/v1/applications/{id}": {
    prepare: ({ of }) => ({ path: `${p}/applications/${of.application}` }),
    ...read,
  },
  "PATCH /admin/v1/applications/{id}": {
    prepare: async (asked) => ({
      path: `${p}/applications/${await newApplication(asked)}`,
      body: { revision: 1, note: "n" },
    }),
    ...managed,
  },
  "DELETE /admin/v1/applications/{id}": {
    prepare: async (asked) => ({ path: `${p}/applications/${await newApplication(asked)}` }),
    ...managed,
  },
};

/** Nobody else changes a budget of an operator. */
const operators = { own: operated.own, other: managed.other };

const budgets: Readonly<Record<string, RouteCase>> = {
  "POST /admin/v1/budgets": {
    prepare: async (asked) => ({
      path: `${p}/budgets`,
      body: { application_id: await newApplication(asked), limit_usd: "5", period: "day" },
    }),
    ...made,
  },
  "GET /admin/v1/budgets": { prepare: inAccount("/budgets"), ...list },
  "GET /admin/v1/budgets/{id}": {
    prepare: async (asked) => ({ path: `${p}/budgets/${await newBudget(asked)}` }),
    ...read,
  },
  "PATCH /admin/v1/budgets/{id}": {
    prepare: async (asked) => ({
      path: `${p}/budgets/${await newBudget(asked)}`,
      body: { revision: 1, limit_usd: "7" },
    }),
    ...operators,
  },
  "DELETE /admin/v1/budgets/{id}": {
    prepare: async (asked) => ({ path: `${p}/budgets/${await newBudget(asked)}` }),
    ...operators,
  },
};

const keys: Readonly<Record<string, RouteCase>> = {
  "POST /admin/v1/keys": {
    prepare: ({ of }) => ({
      path: `${p}/keys`,
      body: { application_id: of.application, plan: "standard" },
    }),
    ...made,
  },
  "GET /admin/v1/keys": { prepare: inAccount("/keys"), ...list },
  "GET /admin/v1/keys/{id}": { prepare: ({ of }) => ({ path: `${p}/keys/${of.key}` }), ...read },
  "PATCH /admin/v1/keys/{id}": {
    prepare: async (asked) => ({
      path: `${p}/keys/${await newKey(asked)}`,
      body: { revision: 1, disabled: true },
    }),
    ...managed,
  },
  "DELETE /admin/v1/keys/{id}": {
    prepare: async (asked) => ({ path: `${p}/keys/${await newKey(asked)}` }),
    ...managed,
  },
  "POST /admin/v1/keys/{id}/rotate": {
    prepare: async (asked) => ({ path: `${p}/keys/${await newKey(asked)}/rotate`, body: {} }),
    ...made,
  },
  "DELETE /admin/v1/keys/{id}/secrets/{public_id}": {
    prepare: async (asked) => {
      const key = await newKey(asked);
      return { path: `${p}/keys/${key}/secrets/${await olderSecret(asked, key)}` };
    },
    ...managed,
  },
  "POST /admin/v1/leaks": {
    prepare: () => ({ path: `${p}/leaks`, body: { api_keys: ["a text"] } }),
    own: operated.own,
    other: undefined,
  },
};

const pools: Readonly<Record<string, RouteCase>> = {
  "GET /admin/v1/peppers": {
    prepare: at("/peppers"),
    own: "200 403 200 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/pools": { prepare: at("/pools"), own: read.own, other: undefined },
  "GET /admin/v1/pools/{name}": {
    prepare: ({ of }) => ({ path: `${p}/pools/pool-${of.name}` }),
    ...read,
  },
};

const access: Readonly<Record<string, RouteCase>> = {
  "POST /admin/v1/users": {
    prepare: ({ of }) => ({
      path: `${p}/users`,
      body: {
        email: `${newName().replace(" ", "-")}@example.com`,
        role: "auditor",
        account_id: of.account,
      },
    }),
    own: "201 403 403 403 403 403",
    other: "201 403 403 403 403 403",
  },
  "GET /admin/v1/users": {
    prepare: inAccount("/users"),
    own: overseen.own,
    other: "200 403 200 200 403 403",
  },
  "GET /admin/v1/users/{id}": {
    prepare: ({ of }) => ({ path: `${p}/users/${of.user}` }),
    ...overseen,
  },
  "PATCH /admin/v1/users/{id}": {
    prepare: async ({ world, of }) => ({
      path: `${p}/users/${(await world.newUser("auditor", of.account)).id}`,
      body: { revision: 1, role: "operator" },
    }),
    ...operated,
  },
  "DELETE /admin/v1/users/{id}": {
    prepare: async ({ world, of }) => ({
      path: `${p}/users/${(await world.newUser("auditor", of.account)).id}`,
    }),
    ...operated,
  },
  "POST /admin/v1/users/{id}/link": {
    prepare: ({ of }) => ({ path: `${p}/users/${of.user}/link`, body: {} }),
    own: "201 403 403 403 403 403",
    other: "201 403 403 403 403 403",
  },
  "POST /admin/v1/tokens": {
    prepare: () => ({ path: `${p}/tokens`, body: { name: "script" } }),
    own: "201 201 201 201 403 201",
    other: undefined,
  },
  "GET /admin/v1/tokens": {
    prepare: async ({ principal, of, world }) => {
      const isOwn = of === world.own;
      if (!isOwn) await world.newTokenOf(of);
      const user = isOwn ? principal.userId : of.user;
      return { path: `${p}/tokens?user_id=${user}` };
    },
    own: "200 200 200 200 200 200",
    other: "200 404 404 404 404 404",
  },
  "DELETE /admin/v1/tokens/{id}": {
    prepare: async ({ world, of, principal }) => {
      const isOwn = of === world.own;
      const tokens = isOwn ? principal.newOwnToken() : world.newTokenOf(of);
      return { path: `${p}/tokens/${await tokens}` };
    },
    own: "200 200 200 200 403 200",
    other: "200 404 404 404 403 404",
  },
  "GET /admin/v1/sessions": {
    prepare: ({ principal, of, world }) => ({
      path: `${p}/sessions?user_id=${of === world.own ? principal.userId : of.user}`,
    }),
    own: "200 200 200 200 200 200",
    other: "200 404 404 404 404 404",
  },
  "DELETE /admin/v1/sessions/{id}": {
    prepare: async ({ world, of, principal }) => {
      const isOwn = of === world.own;
      const session = isOwn ? principal.newOwnSession() : world.newSession(of.email);
      return { path: `${p}/sessions/${await session}` };
    },
    own: "200 200 200 200 403 200",
    other: "200 404 404 404 403 404",
  },
  "GET /admin/v1/session": { prepare: at("/session"), own: read.own, other: undefined },
  "DELETE /admin/v1/session": {
    // A session of its own: the others are still needed.
    prepare: async ({ principal }) => ({ path: `${p}/session`, as: await principal.twin() }),
    own: "200 200 200 200 403 409",
    other: undefined,
  },
  "POST /admin/v1/session/password": {
    prepare: async ({ principal }) => ({
      path: `${p}/session/password`,
      body: { current_password: password, new_password: `${password} again` },
      as: await principal.twin(),
    }),
    own: "200 200 200 200 403 409",
    other: undefined,
  },
};

const year = "&since=365d";
const watching: Readonly<Record<string, RouteCase>> = {
  "GET /admin/v1/usage/totals": {
    prepare: inAccount("/usage/totals", `${year}&by=account,application,key`),
    ...list,
  },
  "GET /admin/v1/usage/series": {
    prepare: inAccount("/usage/series", `${year}&by=application&step=day`),
    ...list,
  },
  "GET /admin/v1/usage/calls": { prepare: inAccount("/usage/calls", year), ...list },
  "GET /admin/v1/usage/export": {
    prepare: inAccount("/usage/export", `${year}&format=ndjson`),
    ...list,
  },
  "GET /admin/v1/usage/calls/{id}": {
    prepare: ({ of }) => ({ path: `${p}/usage/calls/${of.call}` }),
    ...read,
  },
  "GET /admin/v1/accounts/{id}/statement": {
    prepare: ({ of }) => ({ path: `${p}/accounts/${of.account}/statement?month=2026-03` }),
    ...read,
  },
  "POST /admin/v1/usage/reprice": {
    prepare: () => ({ path: `${p}/usage/reprice`, body: { since: "1d", dry_run: true } }),
    own: operated.own,
    other: undefined,
  },
  "GET /admin/v1/refusals": { prepare: inAccount("/refusals"), ...list },
  "GET /admin/v1/refusals/{id}": {
    prepare: ({ of }) => ({ path: `${p}/refusals/${of.refusal}` }),
    ...read,
  },
  "GET /admin/v1/explain/{id}": {
    prepare: ({ of }) => ({ path: `${p}/explain/${of.refusal}` }),
    ...read,
  },
  "GET /admin/v1/audit": { prepare: inAccount("/audit"), ...list },
  "GET /admin/v1/audit/verify": {
    prepare: at("/audit/verify"),
    own: "200 403 200 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/environments": { prepare: at("/environments"), own: read.own, other: undefined },
  "GET /admin/v1/models": { prepare: at("/models"), own: read.own, other: undefined },
  "GET /admin/v1/plans": { prepare: at("/plans"), own: read.own, other: undefined },
  "GET /admin/v1/choices": {
    prepare: at("/choices?of=accounts,applications,keys,models,plans,pools,environments"),
    own: read.own,
    other: undefined,
  },
  "GET /admin/v1/prices": {
    prepare: at("/prices"),
    own: "200 403 200 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/configuration": {
    prepare: at("/configuration"),
    own: "200 403 200 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/status": { prepare: at("/status"), own: operated.own, other: undefined },
  "GET /admin/v1/processes": {
    prepare: at("/processes"),
    own: "200 403 200 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/targets": {
    prepare: at("/targets"),
    own: "200 403 200 403 403 403",
    other: undefined,
  },
  "GET /admin/v1/keys/{id}/live": {
    prepare: ({ of }) => ({ path: `${p}/keys/${of.key}/live` }),
    ...read,
  },
  // A stream would not end; what is in one, `test/live` knows. This lacks its key.
  "GET /admin/v1/live": {
    prepare: at("/live?topics=key"),
    own: "400 400 400 400 400 400",
    other: undefined,
  },
  "GET /admin/v1/overview": { prepare: at("/overview"), own: read.own, other: undefined },
};

const message = { model: "plain-model", messages: [{ role: "user", content: "Hello" }] };
const called = { own: "200 200 403 403 403 200", other: "200 404 403 403 403 404" };
const playgroundOf =
  (api: string, body: object): Prepare =>
  async (asked) => ({ path: `${p}/playground/${api}?key_id=${await newKey(asked)}`, body });

const playground: Readonly<Record<string, RouteCase>> = {
  "POST /admin/v1/playground/chat/completions": {
    prepare: playgroundOf("chat/completions", message),
    ...called,
  },
  "POST /admin/v1/playground/embeddings": {
    prepare: playgroundOf("embeddings", { model: "embedding-model", input: "Hello" }),
    ...called,
  },
  "POST /admin/v1/playground/responses": {
    prepare: playgroundOf("responses", { model: "plain-model", input: "Hello" }),
    ...called,
  },
  "POST /admin/v1/playground/messages": {
    prepare: playgroundOf("messages", { ...message, max_tokens: 5 }),
    ...called,
  },
};

/** Every route that wants to know who asks. */
export const guarded: ReadonlyMap<string, RouteCase> = new Map(
  Object.entries({
    ...accounts,
    ...budgets,
    ...keys,
    ...pools,
    ...access,
    ...watching,
    ...playground,
  }),
);

/** Of pages, which run the console's own scripts, and of files. */
export const consolePaths: readonly string[] = [
  "/",
  ...consoleSections.flatMap((name) => [`/${name}`, `/${name}/*`]),
  "/assets/*",
  "/favicon.ico",
];

const open = { checksOrigin: true, anonymous: 200 };
/** Every route that does not. */
export const unguarded: ReadonlyMap<string, OpenCase> = new Map<string, OpenCase>([
  ...consolePaths.map((path): [string, OpenCase] => [
    `GET ${path}`,
    {
      prepare: () => ({ path: path.replace("*", "x") }),
      checksOrigin: false,
      anonymous: path === "/assets/*" ? 404 : 200,
    },
  ]),
  ["GET /metrics", { prepare: () => ({ path: "/metrics" }), ...open, checksOrigin: false }],
  ["GET /healthz", { prepare: () => ({ path: "/healthz" }), ...open, checksOrigin: false }],
  ["GET /readyz", { prepare: () => ({ path: "/readyz" }), ...open, checksOrigin: false }],
  ["GET /admin/v1/openapi.json", { prepare: at("/openapi.json"), ...open }],
  ["GET /admin/v1/docs", { prepare: at("/docs"), ...open }],
  ["GET /admin/v1/sign-in", { prepare: at("/sign-in"), ...open }],
  [
    "POST /admin/v1/session",
    { prepare: () => ({ path: `${p}/session`, body: { email: "x" } }), ...open, anonymous: 400 },
  ],
  [
    "POST /admin/v1/bootstrap",
    {
      prepare: () => ({
        path: `${p}/bootstrap`,
        body: { token: "guessed", email: "x@example.com", password },
      }),
      ...open,
      anonymous: 401,
    },
  ],
  [
    "POST /admin/v1/session/link",
    {
      prepare: () => ({ path: `${p}/session/link`, body: { token: "guessed", password } }),
      ...open,
      anonymous: 401,
    },
  ],
  // No identity provider is configured here.
  ["GET /admin/v1/sso/start", { prepare: at("/sso/start"), ...open, anonymous: 404 }],
  ["GET /admin/v1/sso/callback", { prepare: at("/sso/callback"), ...open, anonymous: 404 }],
]);
