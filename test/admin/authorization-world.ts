import type { Role } from "../../src/domain/principal.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bearer, sendAs, signIn, type Credential, type Session } from "./admin-caller.ts";

export const password = "seven quiet otters read";

/** In the name of all that belongs to the account that others must not see. */
export const marker = "zebra";

export const principalNames = [
  "operator",
  "account holder",
  "auditor",
  "auditor of one account",
  "read-only token of an account holder",
  "token of an account holder",
] as const;
export type PrincipalName = (typeof principalNames)[number];

/** One thing of each kind that belongs to an account. */
export interface Belongings {
  readonly account: string;
  readonly name: string;
  readonly application: string;
  readonly key: string;
  readonly user: string;
  readonly email: string;
  readonly call: string;
  readonly refusal: string;
}

export type BadCredential =
  | "expired session"
  | "revoked session"
  | "session of a disabled user"
  | "expired token"
  | "revoked token"
  | "token of a disabled user";

export interface Principal {
  readonly name: PrincipalName;
  readonly userId: string;
  readonly good: Credential;
  readonly isSession: boolean;
  readonly bad: ReadonlyMap<BadCredential, Credential>;
  /** A credential like the good one, of another user: it may be used up. */
  twin(): Promise<Credential>;
  /** Id of a new token of this principal's user. */
  newOwnToken(): Promise<string>;
  /** Id of a new session of this principal's user. */
  newOwnSession(): Promise<string>;
}

interface Member {
  readonly id: string;
  readonly email: string;
}

/** A gateway with two accounts and everybody who may have to do with them. */
export interface World extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly own: Belongings;
  readonly other: Belongings;
  readonly principals: readonly Principal[];
  /** As the machine's own operator; gives the parsed answer. Throws unless it is 2xx. */
  make(method: string, path: string, body?: unknown): Promise<Made>;
  signIn(email: string): Promise<Session>;
  newUser(role: Role, account?: string): Promise<Member>;
  /** Id of a new token of the account's user. */
  newTokenOf(of: Belongings): Promise<string>;
  /** Id of a new session of the user with this address. */
  newSession(email: string): Promise<string>;
  /** A token of a user who signs in for it. */
  newToken(
    session: Session,
    body?: object,
  ): Promise<{ readonly id: string; readonly text: string }>;
}

export interface Made {
  readonly id: string;
  readonly revision: number;
  readonly key: {
    readonly id: string;
    readonly secrets: readonly { readonly public_id: string }[];
  };
  readonly api_key: string;
  readonly token: { readonly id: string };
  readonly secret: string;
}

const sections = {
  admin: "{ requests_per_minute: 1000000, sign_ins_per_minute: 1000 }",
  http: "{ body_limit: 64KiB }",
  // A pool for each account, named after it.
  pools: `
  pool-plain: { tokens_per_minute: 1000000 }
  pool-${marker}: { tokens_per_minute: 1000000 }`,
  models: `
  plain-model:
    kind: chat
    context_window: 8192
    targets: [{ model: simulated-chat, upstream: simulator, pool: pool-plain }]
  other-model:
    kind: chat
    context_window: 8192
    targets: [{ model: simulated-other, upstream: simulator, pool: pool-${marker} }]
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ model: simulated-embedding, upstream: simulator }]`,
};

/** `more` replaces sections of the configuration. */
export async function openWorld(
  more: Readonly<Record<string, string>> = {},
  clock = new ManualClock(),
): Promise<World> {
  const gateway = await startGateway({ sections: { ...sections, ...more }, overrides: { clock } });
  const { adminUrl } = gateway;
  let users = 0;
  const tools = {
    async make(method: string, path: string, body?: unknown): Promise<Made> {
      const response = await gateway.admin(method, `/admin/v1${path}`, body);
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
      return JSON.parse(text) as Made;
    },
    signIn: (email: string) => signIn(adminUrl, email, password),
    async newUser(role: Role, account?: string): Promise<Member> {
      users += 1;
      const email = `user-${users}@example.com`;
      const body = { email, role, password, account_id: account ?? null };
      return { id: (await tools.make("POST", "/users", body)).id, email };
    },
    async newToken(session: Session, body: object = {}) {
      const request = { method: "POST", path: "/admin/v1/tokens", body: { name: "t", ...body } };
      const answer = await sendAs(adminUrl, request, session);
      const { token, secret } = JSON.parse(answer.text) as Made;
      return { id: token.id, text: secret };
    },
    async newSession(email: string): Promise<string> {
      const request = { method: "GET", path: "/admin/v1/session" };
      const answer = await sendAs(adminUrl, request, await tools.signIn(email));
      return (JSON.parse(answer.text) as Made).id;
    },
  };
  const own = await furnish(gateway, tools, "plain");
  const other = await furnish(gateway, tools, marker);
  const principals = await invite(tools, own.account, clock);
  return {
    ...tools,
    gateway,
    own,
    other,
    principals,
    newTokenOf: async (of) => (await tools.newToken(await tools.signIn(of.email))).id,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

type Tools = Pick<World, "make" | "signIn" | "newUser" | "newToken" | "newSession">;

/** An account with an application, keys, units of its pool, a user, a call and a refused call. */
async function furnish(gateway: TestGateway, tools: Tools, name: string): Promise<Belongings> {
  const { make } = tools;
  const plans = ["pilot", "standard", "enterprise"];
  const account = (await make("POST", "/accounts", { name, plans, max_keys: 1000 })).id;
  const names = { environment: "test", name: `${name}-search` };
  const application = (await make("POST", "/applications", { account_id: account, ...names })).id;
  const limits = { requests_per_minute: 1, tokens_per_minute: 1_000_000 };
  const wanted = { application_id: application, plan: "enterprise", limits, note: name };
  const { key, api_key: text } = await make("POST", "/keys", wanted);
  const units = { provisioned_units: 3, provisioned_pool: `pool-${name}` };
  await make("POST", "/keys", { ...wanted, ...units });
  const { id: user, email } = await tools.newUser("account_holder", account);
  await make("PATCH", `/users/${user}`, { revision: 1, name: `${name} person` });
  const idOfCall = async (): Promise<string> => {
    const response = await gateway.post(
      "/v1/embeddings",
      { model: "embedding-model", input: "hi" },
      { headers: { authorization: `Bearer ${text}` } },
    );
    await response.text();
    return response.headers.get("x-request-id") ?? "";
  };
  const call = await idOfCall();
  const refusal = await idOfCall();
  await gateway.usage();
  return { account, name, application, key: key.id, user, email, call, refusal };
}

interface Guest {
  readonly role: Role;
  readonly account: string | undefined;
  readonly user: Member;
  readonly disabled: Member;
  readonly expiredSession: Session;
  readonly expiredTokens: ReadonlyMap<string, string>;
}

const dayMs = 86_400_000;

async function invite(
  tools: Tools,
  account: string,
  clock: ManualClock,
): Promise<readonly Principal[]> {
  const roles = [
    ["operator", undefined],
    ["account_holder", account],
    ["auditor", undefined],
    ["auditor", account],
  ] as const;
  const guests: Guest[] = [];
  for (const [role, bound] of roles) {
    const user = await tools.newUser(role, bound);
    const disabled = await tools.newUser(role, bound);
    const expiredSession = await tools.signIn(user.email);
    const expiredTokens = new Map<string, string>();
    for (const scope of ["read", "write"]) {
      const scopes = scope === "read" ? ["read"] : ["read", "write"];
      const body = { scopes, expires_in_days: 1 };
      expiredTokens.set(scope, (await tools.newToken(expiredSession, body)).text);
    }
    guests.push({ role, account: bound, user, disabled, expiredSession, expiredTokens });
  }
  clock.advance(dayMs);
  const [operator, holder, auditor, boundAuditor] = guests;
  if (!operator || !holder || !auditor || !boundAuditor) throw new Error("somebody is missing");
  return [
    await sessionPrincipal(tools, "operator", operator),
    await sessionPrincipal(tools, "account holder", holder),
    await sessionPrincipal(tools, "auditor", auditor),
    await sessionPrincipal(tools, "auditor of one account", boundAuditor),
    await tokenPrincipal(tools, "read", holder),
    await tokenPrincipal(tools, "write", holder),
  ];
}

async function sessionPrincipal(
  tools: Tools,
  name: PrincipalName,
  { role, account, user, disabled, expiredSession }: Guest,
): Promise<Principal> {
  const revoked = await tools.signIn(user.email);
  const local = revoked.changeHeaders["origin"] ?? "";
  await sendAs(local, { method: "DELETE", path: "/admin/v1/session" }, revoked);
  const ofDisabled = await tools.signIn(disabled.email);
  await disable(tools, disabled);
  const bad = new Map<BadCredential, Credential>([
    ["expired session", expiredSession],
    ["revoked session", revoked],
    ["session of a disabled user", ofDisabled],
  ]);
  const good = await tools.signIn(user.email);
  return {
    name,
    userId: user.id,
    good,
    isSession: true,
    bad,
    twin: async () => tools.signIn((await tools.newUser(role, account)).email),
    newOwnToken: async () => (await tools.newToken(good)).id,
    newOwnSession: () => tools.newSession(user.email),
  };
}

async function disable({ make }: Tools, { id }: Member): Promise<void> {
  const { revision } = await make("GET", `/users/${id}`);
  await make("PATCH", `/users/${id}`, { revision, disabled: true });
}

async function tokenPrincipal(
  tools: Tools,
  scope: "read" | "write",
  { user, account, expiredTokens }: Guest,
): Promise<Principal> {
  const session = await tools.signIn(user.email);
  const scopes = scope === "read" ? ["read"] : ["read", "write"];
  const revoked = await tools.newToken(session, { scopes });
  await tools.make("DELETE", `/tokens/${revoked.id}`);
  const second = await tools.newUser("account_holder", account);
  const ofDisabled = await tools.newToken(await tools.signIn(second.email), { scopes });
  await disable(tools, second);
  const bad = new Map<BadCredential, Credential>([
    ["expired token", bearer(expiredTokens.get(scope) ?? "")],
    ["revoked token", bearer(revoked.text)],
    ["token of a disabled user", bearer(ofDisabled.text)],
  ]);
  const name =
    scope === "read" ? "read-only token of an account holder" : "token of an account holder";
  const good = bearer((await tools.newToken(session, { scopes })).text);
  return {
    name,
    userId: user.id,
    good,
    isSession: false,
    bad,
    twin: async () => good,
    newOwnToken: async () => (await tools.newToken(session)).id,
    newOwnSession: () => tools.newSession(user.email),
  };
}
