import { expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import {
  bearer,
  nobody,
  sendAs,
  sessionOf,
  type AdminAnswer,
  type Credential,
  type Session,
} from "./admin-caller.ts";

const p = "/admin/v1";
const password = "seven quiet otters read";
const minuteMs = 60_000;

interface Journey extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly clock: ManualClock;
  readonly tokens: readonly string[];
  readonly send: (
    method: string,
    path: string,
    body?: unknown,
    as?: Credential,
  ) => Promise<AdminAnswer>;
  readonly tryToSignIn: (email: string, password: string) => Promise<AdminAnswer>;
  signIn(email: string): Promise<Session>;
  /** The first operator. */
  bootstrap(): Promise<Session>;
}

async function startJourney(admin = "{}"): Promise<Journey> {
  const clock = new ManualClock();
  const tokens: string[] = [];
  const gateway = await startGateway({
    sections: { admin },
    overrides: { clock, onBootstrapToken: ({ text }) => void tokens.push(text) },
  });
  const { adminUrl } = gateway;
  const journey: Journey = {
    gateway,
    clock,
    tokens,
    send: (method, path, body, as = nobody) =>
      sendAs(adminUrl, { method, path: p + path, body }, as),
    tryToSignIn: (email, secret) => journey.send("POST", "/session", { email, password: secret }),
    async signIn(email) {
      return sessionOf(adminUrl, await journey.tryToSignIn(email, password));
    },
    async bootstrap() {
      const body = { token: tokens[0], email: "Root@Example.com", password };
      const answer = await journey.send("POST", "/bootstrap", body);
      if (answer.status !== 201) throw new Error(answer.text);
      return sessionOf(adminUrl, answer);
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
  return journey;
}

interface Made {
  readonly id: string;
  readonly api_key: string;
  readonly key: { readonly id: string };
}

async function make(answer: Promise<AdminAnswer>): Promise<Made> {
  const { status, text } = await answer;
  if (status !== 201) throw new Error(`${status} ${text}`);
  return JSON.parse(text) as Made;
}

/** An account with a holder, and an application with a key. */
async function furnish(journey: Journey, operator: Session) {
  const { send } = journey;
  const post = (path: string, body: unknown) => make(send("POST", path, body, operator));
  const account = await post("/accounts", { name: "first" });
  const user = { email: "ada@example.com", role: "account_holder", account_id: account.id };
  const holder = await post("/users", { ...user, password });
  const names = { account_id: account.id, environment: "test", name: "search" };
  const application = await post("/applications", names);
  const issued = await post("/keys", { application_id: application.id, plan: "standard" });
  return { account, holder, application, issued };
}

test("from the one-time token to an account holder who rotates its own key", async () => {
  await using journey = await startJourney();
  const { gateway, send, tokens } = journey;
  expect(tokens.length).toBe(1);
  const before = await send("GET", "/sign-in");
  expect(JSON.parse(before.text)).toMatchObject({ needs_bootstrap: true, password: true });
  const guess = { token: `${tokens[0]}x`, email: "eve@example.com", password };
  expect((await send("POST", "/bootstrap", guess)).status).toBe(401);
  const operator = await journey.bootstrap();
  const again = { token: tokens[0], email: "eve@example.com", password };
  const spent = await send("POST", "/bootstrap", again);
  expect([spent.status, spent.code]).toEqual([401, "wrong_credentials"]);
  expect(JSON.parse((await send("GET", "/sign-in")).text)).toMatchObject({
    needs_bootstrap: false,
  });

  const { issued } = await furnish(journey, operator);
  const ada = await journey.signIn("ada@example.com");
  const shown = await send("GET", "/session", undefined, ada);
  expect(JSON.parse(shown.text)).toMatchObject({
    user: { email: "ada@example.com", role: "account_holder" },
    csrf_token: ada.csrfToken,
  });
  const rotate = `/keys/${issued.key.id}/rotate`;
  const second = await make(send("POST", rotate, { overlap_seconds: 3600 }, ada));
  for (const text of [issued.api_key, second.api_key]) {
    expect((await gateway.get("/v1/models", bearer(text))).status).toBe(200);
  }
  const third = await make(send("POST", rotate, { compromised: true }, ada));
  const statuses = [issued.api_key, second.api_key, third.api_key].map(
    async (text) => (await gateway.get("/v1/models", bearer(text))).status,
  );
  expect(await Promise.all(statuses)).toEqual([401, 401, 200]);
  const audit = await send("GET", "/audit?action=key.rotate", undefined, ada);
  expect(audit.text.split(`"name":"ada@example.com"`).length - 1).toBe(2);

  expect((await send("DELETE", "/session", undefined, ada)).status).toBe(200);
  expect((await send("GET", "/session", undefined, ada)).status).toBe(401);
  expect((await send("GET", "/session", undefined, operator)).status).toBe(200);
  const log = gateway.log.join("\n");
  for (const secret of [password, tokens[0] ?? "", ada.csrfToken, ada.cookie.split("=")[1] ?? ""]) {
    expect(log.includes(secret)).toBe(false);
  }
}, 180_000);

test("wrong passwords are limited for whom they are tried on, and for nobody else", async () => {
  await using journey = await startJourney();
  const { clock, tryToSignIn } = journey;
  const operator = await journey.bootstrap();
  await furnish(journey, operator);
  const tries: number[] = [];
  for (let count = 0; count < 7; count += 1) {
    tries.push((await tryToSignIn("ada@example.com", `guess ${count} of a password`)).status);
  }
  expect(tries).toEqual([401, 401, 401, 401, 401, 429, 429]);
  const refused = await tryToSignIn("Ada@Example.com", password);
  expect([refused.status, refused.code]).toEqual([429, "too_many_requests"]);
  const seconds = Number(refused.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(65);
  expect((await tryToSignIn("root@example.com", password)).status).toBe(200);
  expect((await journey.send("GET", "/accounts", undefined, operator)).status).toBe(200);
  clock.advance(seconds * 1000);
  expect((await tryToSignIn("ada@example.com", password)).status).toBe(200);
}, 180_000);

test("an unknown user and a wrong password are told alike, and both are limited", async () => {
  await using journey = await startJourney();
  await furnish(journey, await journey.bootstrap());
  const wrong = await journey.tryToSignIn("ada@example.com", "a wrong password");
  const unknown = await journey.tryToSignIn("nobody@example.com", "a wrong password");
  expect([unknown.status, unknown.text]).toEqual([wrong.status, wrong.text]);
  const statuses = new Set<number>();
  for (let count = 0; count < 40; count += 1) {
    statuses.add((await journey.tryToSignIn(`guess-${count}@example.com`, "x")).status);
  }
  // Five users' tries from one address: no list of addresses is tried out.
  expect(statuses).toEqual(new Set([401, 429]));
  journey.clock.advance(66_000);
  expect((await journey.tryToSignIn("ada@example.com", password)).status).toBe(200);
}, 180_000);

test("a session that is silent for half an hour is over, and one that is busy after twelve", async () => {
  await using journey = await startJourney();
  const { clock, send } = journey;
  const operator = await journey.bootstrap();
  await furnish(journey, operator);
  const isIn = async (session: Session): Promise<boolean> =>
    (await send("GET", "/session", undefined, session)).status === 200;
  const silent = await journey.signIn("ada@example.com");
  clock.advance(30 * minuteMs - 1);
  expect(await isIn(silent)).toBe(true);
  clock.advance(30 * minuteMs - 1);
  expect(await isIn(silent)).toBe(true);
  clock.advance(30 * minuteMs);
  expect(await isIn(silent)).toBe(false);
  expect(await isIn(operator)).toBe(false);
  const busy = await journey.signIn("ada@example.com");
  let minutes = 0;
  while (minutes < 11 * 60 + 40 && (await isIn(busy))) {
    clock.advance(20 * minuteMs);
    minutes += 20;
  }
  expect(minutes).toBe(11 * 60 + 40);
  expect(await isIn(busy)).toBe(true);
  clock.advance(20 * minuteMs - 1);
  expect(await isIn(busy)).toBe(true);
  clock.advance(1);
  expect(await isIn(busy)).toBe(false);
  expect((await send("GET", "/session", undefined, busy)).code).toBe("not_signed_in");
}, 180_000);

test("a user who is disabled, renamed in role or given a password is out at once", async () => {
  await using journey = await startJourney();
  const { send, clock } = journey;
  const operator = await journey.bootstrap();
  const { holder } = await furnish(journey, operator);
  const changes = [
    { role: "auditor" },
    { password: "eight loud otters write" },
    { disabled: true },
  ];
  for (const wanted of changes) {
    clock.advance(minuteMs);
    const ada = await journey.signIn("ada@example.com");
    const made = send("POST", "/tokens", { name: "script" }, ada);
    const { secret } = JSON.parse((await made).text) as { secret: string };
    const seen = await send("GET", `/users/${holder.id}`, undefined, operator);
    const { revision } = JSON.parse(seen.text) as { revision: number };
    const changed = await send("PATCH", `/users/${holder.id}`, { revision, ...wanted }, operator);
    expect(changed.status).toBe(200);
    expect((await send("GET", "/session", undefined, ada)).status).toBe(401);
    const isDisabled = "disabled" in wanted;
    const byToken = await send("GET", "/session", undefined, bearer(secret));
    expect([wanted, byToken.status]).toEqual([wanted, isDisabled ? 401 : 200]);
    const back = "password" in wanted ? { password } : { disabled: false, role: "account_holder" };
    const { revision: next } = JSON.parse(changed.text) as { revision: number };
    const undone = { revision: next, ...back };
    expect((await send("PATCH", `/users/${holder.id}`, undone, operator)).status).toBe(200);
    expect((await send("GET", "/session", undefined, ada)).status).toBe(401);
  }
}, 180_000);

test("a password that its user changes ends all other sessions, and the page goes on", async () => {
  await using journey = await startJourney();
  const { send } = journey;
  await furnish(journey, await journey.bootstrap());
  const one = await journey.signIn("ada@example.com");
  const other = await journey.signIn("ada@example.com");
  const wrong = { current_password: "not it", new_password: "eight loud otters write" };
  expect((await send("POST", "/session/password", wrong, one)).status).toBe(401);
  const right = { current_password: password, new_password: "eight loud otters write" };
  const changed = await send("POST", "/session/password", right, one);
  expect(changed.status).toBe(200);
  const next = sessionOf(journey.gateway.adminUrl, changed);
  const statuses = [one, other, next].map(
    async (session) => (await send("GET", "/session", undefined, session)).status,
  );
  expect(await Promise.all(statuses)).toEqual([401, 401, 200]);
}, 180_000);

const addresses = [
  {
    scheme: "http",
    publicUrl: undefined,
    name: "sluice_session",
    flags: ["HttpOnly", "Path=/", "SameSite=Strict"],
  },
  {
    scheme: "https",
    publicUrl: "https://console.example.com",
    name: "__Host-sluice_session",
    flags: ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"],
  },
];

test.each(addresses)(
  "over $scheme the cookie is $name, and another name opens nothing",
  async ({ publicUrl, name, flags }) => {
    const admin = publicUrl === undefined ? "{}" : `{ public_url: "${publicUrl}" }`;
    await using journey = await startJourney(admin);
    const { send } = journey;
    const body = { token: journey.tokens[0], email: "root@example.com", password };
    const answer = await send("POST", "/bootstrap", body);
    expect(answer.status).toBe(201);
    const [cookie = ""] = answer.headers.getSetCookie();
    const [pair = "", ...attributes] = cookie.split("; ");
    expect(pair.split("=")[0]).toBe(name);
    expect(attributes.toSorted()).toEqual([...flags, `Max-Age=${12 * 3600}`].toSorted());
    const value = pair.split("=")[1] ?? "";
    expect(value).toMatch(/^[0-9A-Za-z]{43}$/);
    const statusWith = async (cookies: string): Promise<number> =>
      (
        await send("GET", "/session", undefined, {
          headers: { cookie: cookies },
          changeHeaders: {},
        })
      ).status;
    expect(await statusWith(pair)).toBe(200);
    expect(await statusWith(`a=b; ${pair}; c=d`)).toBe(200);
    const otherName = name.startsWith("__Host-") ? "sluice_session" : "__Host-sluice_session";
    expect(await statusWith(`${otherName}=${value}`)).toBe(401);
    const origin = publicUrl ?? journey.gateway.adminUrl;
    const { csrf_token: csrf } = JSON.parse(answer.text) as { csrf_token: string };
    const end = { headers: { cookie: pair }, changeHeaders: { origin, "x-csrf-token": csrf } };
    const ended = await send("DELETE", "/session", undefined, end);
    expect(ended.status).toBe(200);
    const [cleared = ""] = ended.headers.getSetCookie();
    expect(cleared.startsWith(`${name}=; `)).toBe(true);
    expect(cleared).toContain("Max-Age=0");
    expect(await statusWith(pair)).toBe(401);
  },
);
