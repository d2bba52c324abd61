import { expect, test } from "bun:test";
import { errorOf, parseStream } from "../support/bodies.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  upstreamKinds,
  type TestGateway,
  type UpstreamKind,
} from "../support/gateway.ts";

const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });

const chat = (model: string, isStreamed = true) => ({
  model,
  stream: isStreamed,
  messages: [{ role: "user", content: "count: 100000" }],
});

function modelsOf(kind: UpstreamKind): string {
  const model = (alias: string, name: string): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targetAt(kind, { model: name, family: "claude-4" })}]`;
  return (
    model("steady", "sound") +
    model("silent", "fault-stall-mid") +
    model("slow", "fault-slow-first-byte-60000")
  );
}

function startSteady(kind: UpstreamKind, sections: Readonly<Record<string, string>> = {}) {
  return startGateway({
    kind,
    simulator: { tokensPerSecond: 200 },
    sections: {
      streams: "{ hold_headers: 200ms, keep_alive_interval: 1s }",
      models: modelsOf(kind),
      ...sections,
    },
  });
}

/** An open stream with a few pieces read; `rest` resolves to all of it at its end. */
async function openStream(gateway: TestGateway, key: string, model = "steady") {
  const response = await gateway.post("/v1/chat/completions", chat(model), bearer(key));
  expect(response.status).toBe(200);
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const readOne = async (): Promise<boolean> => {
    const piece: Uint8Array | undefined = (await reader?.read())?.value;
    text += decoder.decode(piece, { stream: true });
    return piece !== undefined;
  };
  await readOne();
  await readOne();
  const rest = async (): Promise<string> => {
    while (await readOne());
    return text;
  };
  return { rest };
}

async function untilUpstreamIs(gateway: TestGateway, calls: number): Promise<void> {
  const deadline = performance.now() + 4_000;
  while (gateway.simulator.openCalls !== calls) {
    if (performance.now() > deadline) throw new Error(`no ${calls} calls at the upstream`);
    await Bun.sleep(2);
  }
}

test.each(upstreamKinds)(
  "behind %s, open streams of a revoked key end with an error frame and are billed",
  async (kind) => {
    await using gateway = await startSteady(kind);
    const key = await gateway.createKey();
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => openStream(gateway, key.text)),
    );
    await openStream(gateway, gateway.key);
    const began = performance.now();
    expect((await gateway.admin("DELETE", `/admin/v1/keys/${key.id}`)).status).toBe(200);
    for (const stream of streams) {
      const { chunks, isDone } = parseStream(await stream.rest());
      expect(chunks.at(-1)?.error).toMatchObject({
        code: "invalid_api_key",
        type: "invalid_request_error",
      });
      expect([isDone, chunks.length > 1]).toEqual([false, true]);
    }
    const tookMs = performance.now() - began;
    process.stdout.write(`10 streams of a revoked key ended within ${tookMs.toFixed(0)} ms\n`);
    expect(tookMs).toBeLessThan(5_000);
    // Only the other key's stream is left, and continues.
    await untilUpstreamIs(gateway, 1);
    const rows = await gateway.usage();
    expect(rows).toHaveLength(10);
    for (const row of rows) {
      expect(row).toMatchObject({
        keyId: key.id,
        outcome: "failed",
        status: 401,
        code: "invalid_api_key",
        usageSource: "counted",
      });
      expect(row.outputTokens).toBeGreaterThan(0);
      expect(row.inputTokens).toBeGreaterThan(0);
    }
  },
);

test("a silent stream and calls that wait for their first event end with their key", async () => {
  await using gateway = await startSteady("openai");
  const key = await gateway.createKey();
  const silent = await openStream(gateway, key.text, "silent");
  const early = await gateway.post("/v1/chat/completions", chat("slow"), bearer(key.text));
  const whole = gateway.post("/v1/chat/completions", chat("slow", false), bearer(key.text));
  await untilUpstreamIs(gateway, 3);
  await gateway.admin("DELETE", `/admin/v1/keys/${key.id}`);
  expect(parseStream(await silent.rest()).chunks.at(-1)?.error?.code).toBe("invalid_api_key");
  expect(parseStream(await early.text()).chunks.at(-1)?.error?.code).toBe("invalid_api_key");
  const refused = await whole;
  expect([refused.status, (await errorOf(refused)).code]).toEqual([401, "invalid_api_key"]);
  await untilUpstreamIs(gateway, 0);
  const rows = await gateway.usage();
  expect(rows.map(({ outcome, status }) => [outcome, status])).toEqual(
    Array.from({ length: 3 }, () => ["failed", 401]),
  );
});

test("a stream of a disabled key, application or account ends, and enabling admits new ones", async () => {
  await using gateway = await startSteady("openai");
  for (const what of ["keys", "applications", "accounts"] as const) {
    const names = { account: `account ${what}`, application: `application ${what}` };
    const key = await gateway.createKey(names);
    const view = await read<Record<string, string>>(gateway, `/admin/v1/keys/${key.id}`);
    const ids = {
      keys: key.id,
      applications: view["application_id"],
      accounts: view["account_id"],
    };
    const path = `/admin/v1/${what}/${ids[what]}`;
    const switchTo = async (disabled: boolean): Promise<number> => {
      const { revision } = await read<{ revision: number }>(gateway, path);
      return (await gateway.admin("PATCH", path, { revision, disabled })).status;
    };
    const stream = await openStream(gateway, key.text);
    expect(await switchTo(true)).toBe(200);
    const { chunks } = parseStream(await stream.rest());
    expect([what, chunks.at(-1)?.error?.code]).toEqual([what, "invalid_api_key"]);
    const refused = await gateway.get("/v1/models", bearer(key.text));
    expect([what, refused.status]).toEqual([what, 401]);
    expect(await switchTo(false)).toBe(200);
    const again = await gateway.get("/v1/models", bearer(key.text));
    expect([what, again.status]).toEqual([what, 200]);
  }
});

async function read<Body>(gateway: TestGateway, path: string): Promise<Body> {
  return (await (await gateway.admin("GET", path)).json()) as Body;
}

test("a rotation, a compromised secret or a change of the key cuts no stream", async () => {
  await using gateway = await startGateway({ simulator: { tokensPerSecond: 100 } });
  const key = await gateway.createKey();
  const path = `/admin/v1/keys/${key.id}`;
  const body = { ...chat("chat-model"), messages: [{ role: "user", content: "count: 60" }] };
  const streaming = gateway.post("/v1/chat/completions", body, bearer(key.text));
  await untilUpstreamIs(gateway, 1);
  expect((await gateway.admin("POST", `${path}/rotate`, {})).status).toBe(201);
  expect((await gateway.admin("POST", `${path}/rotate`, { compromised: true })).status).toBe(201);
  const { revision } = await read<{ revision: number }>(gateway, path);
  expect((await gateway.admin("PATCH", path, { revision, note: "kept" })).status).toBe(200);
  expect((await gateway.get("/v1/models", bearer(key.text))).status).toBe(401);
  expect(gateway.simulator.openCalls).toBe(1);
  const { chunks, isDone } = parseStream(await (await streaming).text());
  expect([isDone, chunks.some(({ error }) => error !== undefined)]).toEqual([true, false]);
});

test("a request is not run if its key is revoked while its body arrives", async () => {
  await using gateway = await startGateway();
  const key = await gateway.createKey();
  const { promise: revoked, resolve: letGo } = Promise.withResolvers<undefined>();
  const text = JSON.stringify({ ...chat("chat-model", false), max_tokens: 5 });
  async function* slowBody(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text.slice(0, 20));
    await revoked;
    yield Buffer.from(text.slice(20));
  }
  const sending = fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.text}`, "content-type": "application/json" },
    body: slowBody(),
  });
  await Bun.sleep(100);
  await gateway.admin("DELETE", `/admin/v1/keys/${key.id}`);
  letGo(undefined);
  const response = await sending;
  expect([response.status, (await errorOf(response)).code]).toEqual([401, "invalid_api_key"]);
  expect(gateway.simulator.truth.entries).toHaveLength(0);
  expect(await gateway.usage()).toHaveLength(0);
});

test("an upstream is not drained for its count when the key ends", async () => {
  await using gateway = await startSteady("openai");
  await gateway.reconfigure({
    models: modelsOf("openai"),
    upstreams: `
  simulator: ${simulatorUpstream(gateway.simulator, "openai", "drain: { timeout: 5s, limit: 64 }")}`,
  });
  const key = await gateway.createKey();
  const stream = await openStream(gateway, key.text);
  await gateway.admin("DELETE", `/admin/v1/keys/${key.id}`);
  const { chunks, isDone } = parseStream(await stream.rest());
  expect([isDone, chunks.at(-1)?.error?.code]).toEqual([false, "invalid_api_key"]);
  await untilUpstreamIs(gateway, 0);
  expect(await gateway.usage()).toMatchObject([{ outcome: "failed", status: 401 }]);
});
