import { expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const plan = (tokensPerMinute: number) => ({
  plan: "enterprise",
  limits: { requestsPerMinute: 10_000, tokensPerMinute },
});

const chat = (content: string, rest: object = {}) => ({
  model: "chat-model",
  max_tokens: 2,
  messages: [{ role: "user", content }],
  ...rest,
});

/** As in the attack: text with few tokens a byte, with true counts. */
async function trainDown(gateway: TestGateway, headers: Record<string, string>): Promise<void> {
  const spaces = `echo: ${" ".repeat(20_000)}x`;
  for (let call = 0; call < 100; call += 1) {
    await (await gateway.post("/v1/chat/completions", chat(spaces), { headers })).text();
  }
}

/** Reads the first piece of an answer, and leaves. */
async function leaveEarly(
  gateway: TestGateway,
  content: string,
  headers: Record<string, string>,
): Promise<number> {
  const leaving = new AbortController();
  const body = chat(content, { stream: true, max_tokens: 10_000 });
  const { signal } = leaving;
  const response = await gateway.post("/v1/chat/completions", body, { headers, signal });
  await response.body?.getReader().read();
  leaving.abort();
  await response.body?.cancel().catch(() => undefined);
  return response.status;
}

test("a key that trained its estimate with spaces is billed for everything its callers leave unread", async () => {
  await using gateway = await startGateway({ simulator: { tokensPerSecond: 200 } });
  const attacker = await gateway.createKey({ ...plan(1_000_000_000), account: "attacker" });
  const headers = { authorization: `Bearer ${attacker.text}` };
  await trainDown(gateway, headers);
  const before = new Set((await gateway.usage()).map(({ id }) => id));
  const text = "Most of what people write has words of five letters or so. ".repeat(400);
  for (let call = 0; call < 5; call += 1) await leaveEarly(gateway, `count: 5000 ${text}`, headers);
  const rowsOf = async () => (await gateway.usage()).filter(({ id }) => !before.has(id));
  const deadline = performance.now() + 10_000;
  while ((await rowsOf()).length < 5 && performance.now() < deadline) await Bun.sleep(20);
  const rows = await rowsOf();
  expect(rows).toHaveLength(5);
  const read = gateway.simulator.truth.entries.at(-1)?.promptTokens ?? Infinity;
  expect(read).toBeGreaterThan(4_000);
  for (const row of rows) {
    expect(row).toMatchObject({ outcome: "abandoned" });
    expect(row.inputTokens).toBeGreaterThanOrEqual(read);
  }
});

test("neither sparse nor dense text of one account changes what another reserves", async () => {
  await using gateway = await startGateway();
  const reserved = async (account: string): Promise<number> => {
    const key = await gateway.createKey({ ...plan(1_000_000), account });
    const headers = { authorization: `Bearer ${key.text}` };
    const body = chat("echo: the same text for everybody, ".repeat(100));
    const response = await gateway.post("/v1/chat/completions", body, { headers });
    await response.text();
    return Number(response.headers.get("x-ratelimit-remaining-tokens"));
  };
  const before = await reserved("before");
  const sparse = await gateway.createKey({ ...plan(1_000_000_000), account: "sparse" });
  await trainDown(gateway, { authorization: `Bearer ${sparse.text}` });
  const dense = await gateway.createKey({ ...plan(1_000_000_000), account: "dense" });
  const headers = { authorization: `Bearer ${dense.text}` };
  for (let call = 0; call < 100; call += 1) {
    const body = chat(`echo: ${"!?".repeat(2_000)}`);
    await (await gateway.post("/v1/chat/completions", body, { headers })).text();
  }
  expect(await reserved("after")).toBe(before);
});
