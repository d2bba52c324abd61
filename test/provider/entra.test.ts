import { afterEach, expect, test } from "bun:test";
import type { TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";
import { gatewayOf, type Provider, startProvider, whole } from "./provider.ts";

/** Azure with tokens of Entra: the grant of client credentials, answered by a server of the test. */

interface TokenService extends Disposable {
  readonly url: string;
  readonly asked: readonly Readonly<Record<string, string>>[];
  answers(answer: () => Response | Promise<Response>): void;
}

function startTokenService(): TokenService {
  const asked: Record<string, string>[] = [];
  let current: () => Response | Promise<Response> = () => tokenFor(3_600);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const form = Object.fromEntries(new URLSearchParams(await request.text()));
      asked.push({ path: new URL(request.url).pathname, ...form });
      return current();
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    asked,
    answers(answer) {
      current = answer;
    },
    [Symbol.dispose]: () => void server.stop(true),
  };
}

let issued = 0;
function tokenFor(seconds: number): Response {
  issued += 1;
  return Response.json({ token_type: "Bearer", expires_in: seconds, access_token: `t-${issued}` });
}

let provider: Provider;
let service: TokenService;
let gateway: TestGateway;
let clock: ManualClock;
/** A gateway asks for its first token when it starts. */
async function start(answer?: () => Response | Promise<Response>): Promise<void> {
  issued = 0;
  clock = new ManualClock();
  provider = startProvider();
  service = startTokenService();
  if (answer !== undefined) service.answers(answer);
  const entra = `{ tenant_id: tenant, client_id: app, client_secret: s3cret, authority: "${service.url}" }`;
  gateway = await gatewayOf([provider], {
    upstream: `profile: azure, entra: ${entra}`,
    overrides: { clock },
  });
}

async function stop(): Promise<void> {
  await gateway[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
  service[Symbol.dispose]();
}

afterEach(stop);

const ask = (): Promise<Response> =>
  gateway.post("/v1/chat/completions", {
    model: "chat-model",
    messages: [{ role: "user", content: "Hi" }],
  });
const tokens = (): (string | null)[] =>
  provider.requests.map(({ headers }) => headers.get("authorization"));

test("calls at once wait for one request of a token, which later ones use too", async () => {
  await start(async () => {
    await Bun.sleep(200);
    return tokenFor(3_600);
  });
  const answers = await Promise.all([ask(), ask(), ask()]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await ask()).status).toBe(200);
  expect(tokens()).toEqual(["Bearer t-1", "Bearer t-1", "Bearer t-1", "Bearer t-1"]);
  expect(provider.requests[0]?.headers.get("api-key")).toBeNull();
  expect(service.asked).toEqual([
    {
      path: "/tenant/oauth2/v2.0/token",
      grant_type: "client_credentials",
      client_id: "app",
      client_secret: "s3cret",
      scope: "https://cognitiveservices.azure.com/.default",
    },
  ]);
});

test("a token is renewed five minutes ahead, while it is still used", async () => {
  await start(() => tokenFor(400));
  expect((await ask()).status).toBe(200);
  clock.advance(60_000);
  expect((await ask()).status).toBe(200);
  expect(service.asked).toHaveLength(1);
  clock.advance(60_000);
  expect((await ask()).status).toBe(200);
  await until(() => service.asked.length === 2);
  expect(tokens()).toEqual(["Bearer t-1", "Bearer t-1", "Bearer t-1"]);
  await until(async () => (await ask()).status === 200 && tokens().at(-1) === "Bearer t-2");
  expect(service.asked).toHaveLength(2);
});

test("a token that the server refuses is replaced", async () => {
  await start();
  expect((await ask()).status).toBe(200);
  provider.answers(({ headers }) =>
    headers.get("authorization") === "Bearer t-1"
      ? Response.json({ error: { code: "401", message: "Unauthorized." } }, { status: 401 })
      : whole("Hi"),
  );
  expect((await ask()).status).toBe(503);
  clock.advance(60_000);
  expect((await ask()).status).toBe(200);
  expect(tokens()).toEqual(["Bearer t-1", "Bearer t-2"]);
});

test.each([
  ["AADSTS7000215: Invalid client secret provided.", "the secret is wrong"],
  ["AADSTS7000222: The provided client secret keys are expired.", "the secret has expired"],
  ["AADSTS90002: Tenant 'tenant' not found.", "no such tenant"],
])("%s is told to the operator, and 503 to the caller", async (description, told) => {
  await start(() =>
    Response.json({ error: "invalid_client", error_description: description }, { status: 401 }),
  );
  const response = await ask();
  expect(response.status).toBe(503);
  expect(provider.requests).toHaveLength(0);
  const said = await response.text();
  for (const secret of ["s3cret", "tenant", "AADSTS"]) expect(said).not.toContain(secret);
  const log = gateway.log.join("\n");
  expect(log).toContain(told);
  expect(log).not.toContain("s3cret");
});

test.each([
  ["no JSON", () => new Response("<html>", { status: 200 })],
  [
    "a redirect",
    () => new Response("", { status: 302, headers: { location: "http://localhost" } }),
  ],
  ["too much", () => new Response("x".repeat(100_000))],
])("%s is no token", async (_, answer) => {
  await start(answer);
  expect((await ask()).status).toBe(503);
  expect(provider.requests).toHaveLength(0);
});
