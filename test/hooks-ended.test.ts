import { metricsOf } from "./support/metrics-of.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { GatewayError } from "../src/domain/errors/gateway-error.ts";
import type { HookPoints } from "../src/snapshot/call-hooks.ts";
import { errorOf } from "./support/bodies.ts";
import { startGateway, type GatewayOptions, type TestGateway } from "./support/gateway.ts";
import { ScriptedUpstream } from "./support/scripted-upstream.ts";

const chatPath = "/v1/chat/completions";

let open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open) await one[Symbol.asyncDispose]();
  open = [];
});

/** Follows calls that have the header `x-hooked`. */
async function gatewayWith(points: HookPoints, options: GatewayOptions = {}): Promise<TestGateway> {
  const begin = ({ headers }: { headers: Pick<Headers, "get"> }) =>
    headers.get("x-hooked") === null ? undefined : points;
  const gateway = await startGateway({
    ...options,
    overrides: { hooks: [{ name: "test", begin }] },
  });
  open.push(gateway);
  return gateway;
}

function ask(content: string, more: object = {}) {
  return { model: "chat-model", messages: [{ role: "user", content }], ...more };
}

const hooked = { "x-hooked": "1" };

/** A point at which a hook waits until the test ends. */
function waitingPoint() {
  const reached = Promise.withResolvers<void>();
  const wait = (): Promise<never> => {
    reached.resolve();
    return new Promise(() => undefined);
  };
  return { reached: reached.promise, wait };
}

const points = ["requestRead", "beforeSend", "answering"] as const;

describe.each(points)("a hook that waits at %s", (point) => {
  test("is not waited for when the caller leaves: the call frees what it holds", async () => {
    const { reached, wait } = waitingPoint();
    const gateway = await gatewayWith(
      { [point]: wait },
      {
        sections: { plans: "{ enterprise: { custom: true } }" },
      },
    );
    const leaving = new AbortController();
    const sent = { headers: hooked, signal: leaving.signal };
    const left = gateway.post(chatPath, ask("echo: hi"), sent).catch(() => undefined);
    await reached;
    leaving.abort();
    await left;
    // One that was never admitted leaves no row.
    const rows = point === "requestRead" ? [] : [{ outcome: "abandoned", status: 499 }];
    while ((await gateway.usage()).length < rows.length) await Bun.sleep(1);
    expect(await gateway.usage()).toMatchObject(rows);
    expect((await gateway.post(chatPath, ask("echo: hi"))).status).toBe(200);
  });

  test("is not waited for beyond the caller's deadline", async () => {
    const gateway = await gatewayWith({ [point]: waitingPoint().wait });
    const headers = { ...hooked, "x-sluice-timeout-ms": "50" };
    const late = await gateway.post(chatPath, ask("echo: hi"), { headers });
    expect([late.status, (await errorOf(late)).code]).toEqual([408, "deadline_exceeded"]);
  });
});

test("a refusal before anything is sent charges no pool and bills nothing", async () => {
  const refusing: HookPoints = {
    beforeSend() {
      throw new GatewayError("invalid_value", { message: "Not that.", param: "messages" });
    },
  };
  const gateway = await gatewayWith(refusing, {
    sections: {
      pools: "{ shared: { tokens_per_minute: 20000, max_in_flight: 10 } }",
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [{ model: simulated-chat, upstream: simulator, pool: shared }]`,
    },
  });
  const request = ask(`echo: ${"word ".repeat(2_000)}`, { max_completion_tokens: 10 });
  for (let call = 0; call < 12; call += 1) {
    const refused = await gateway.post(chatPath, request, { headers: hooked });
    expect(refused.status).toBe(400);
  }
  expect((await gateway.post(chatPath, request)).status).toBe(200);
  const rows = await gateway.usage();
  expect(rows.filter(({ mayBeBilledTwice }) => mayBeBilledTwice)).toEqual([]);
});

test("a hook that fails after the caller has left does not end the reading of the count", async () => {
  const upstream = new ScriptedUpstream();
  open.push({ [Symbol.asyncDispose]: () => upstream.stop() });
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  let batches = 0;
  const gateway = await gatewayWith(
    { answering: (part) => ((batches += 1) === 1 ? part : late.promise) },
    {
      sections: {
        upstreams: `\n  simulator: { kind: openai, base_url: "${upstream.url}", drain: { timeout: 5s } }`,
      },
    },
  );
  const leaving = new AbortController();
  const sent = { headers: hooked, signal: leaving.signal };
  const answer = await gateway.post(chatPath, ask("hi", { stream: true }), sent);
  void answer.text().catch(() => undefined);
  upstream.last.text("more");
  while (batches < 2) await Bun.sleep(1);
  leaving.abort();
  while (gateway.app.dataUrl !== "" && !(await isRead(gateway))) await Bun.sleep(1);
  late.reject(new Error("late"));
  await Bun.sleep(10);
  upstream.last.finish();
  upstream.last.usage();
  upstream.last.end();
  while ((await gateway.usage()).length === 0) await Bun.sleep(1);
  expect((await gateway.usage())[0]).toMatchObject({ inputTokens: 90, outputTokens: 700 });
});

/** Whether no caller waits any more. */
async function isRead(gateway: TestGateway): Promise<boolean> {
  const page = await metricsOf(gateway.adminUrl);
  return /^sluice_open_requests 0$/m.test(page);
}

test("an embeddings request that a hook replaces is estimated once, not with the caller's body beside it", async () => {
  const reserved: (number | undefined)[] = [];
  const gateway = await gatewayWith({
    requestRead: (asked) =>
      asked.kind === "embedding" ? { ...asked, request: { ...asked.request } } : asked,
  });
  const body = {
    model: "embedding-model",
    input: Array.from({ length: 40 }, () => "word ".repeat(50)),
  };
  for (const headers of [{}, hooked]) {
    expect((await gateway.post("/v1/embeddings", body, { headers })).status).toBe(200);
  }
  for (const { reservedTokens } of await gateway.usage()) reserved.push(reservedTokens);
  const [replaced = 0, plain = 0] = reserved;
  expect(replaced).toBeLessThan(plain * 1.1);
});

test("a hook before send sees no credential of the upstream, and a tag replaces no header of it", async () => {
  const seen: string[] = [];
  const got: (string | null)[] = [];
  const upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ headers }) {
      got.push(headers.get("authorization"), headers.get("x-org"));
      return Response.json({ choices: [] }, { status: 500 });
    },
  });
  open.push({ [Symbol.asyncDispose]: () => upstream.stop(true) });
  const gateway = await gatewayWith(
    {
      beforeSend(request) {
        seen.push(JSON.stringify(request.headers));
        return { ...request, headers: { ...request.headers, "x-org": "mine" } };
      },
    },
    {
      sections: {
        upstreams:
          `\n  simulator: { kind: openai, base_url: "http://127.0.0.1:${upstream.port}/v1", ` +
          `api_key: provider-secret, headers: { x-org: operators } }`,
      },
    },
  );
  await gateway.post(chatPath, ask("hi"), { headers: hooked });
  expect(seen.join()).not.toContain("provider-secret");
  expect(got.slice(0, 2)).toEqual(["Bearer provider-secret", "operators"]);
});
