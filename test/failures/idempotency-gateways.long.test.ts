import { expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { parseStream } from "../support/bodies.ts";
import { startFaultProcess } from "../support/fault-process.ts";
import { startGateway, testPepper, type TestGateway } from "../support/gateway.ts";
import { chat, StreamedAnswer, streamedChat, until } from "../support/idempotent-gateway.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { report } from "../support/scorecard.ts";

const plans = "{ enterprise: { custom: true, provisioned: true, idempotency: true } }";
const repeats = 30;

function send(
  { url, key }: { readonly url: string; readonly key: string },
  repeated: string,
  body: unknown,
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "idempotency-key": repeated,
    },
    body: JSON.stringify(body),
  });
}

/** Repeats until there is an answer, as a client does that is told to come again. */
async function sendUntilAnswered(...call: Parameters<typeof send>): Promise<Response> {
  for (;;) {
    const response = await send(...call);
    if (response.status !== 409 && response.status !== 503) return response;
    await response.text();
    await Bun.sleep(200);
  }
}

describeWithPostgres((databases) => {
  const start = async (url: string, key?: string): Promise<TestGateway> =>
    startGateway({
      sections: { storage: `{ url: "${url}" }`, plans },
      simulator: { tokensPerSecond: 200 },
      ...(key !== undefined && { key: { application: key } }),
    });

  const isReplay = ({ headers }: Response): boolean => headers.has("idempotent-replayed");

  test(`of ${repeats} equal calls at three gateways on one database, one is made`, async () => {
    const url = await databases.server.createDatabase();
    await using first = await start(url);
    await using second = await start(url, "second");
    await using third = await start(url, "third");
    const gateways = [first, second, third];
    for (const { app } of gateways) await app.admin.onKeysChanged();
    const made = (): number =>
      gateways.reduce((sum, { simulator }) => sum + simulator.truth.size, 0);
    const bodies = [streamedChat("count: 300"), chat("count: 300")];
    for (const [index, body] of bodies.entries()) {
      const before = { calls: made(), rows: (await first.usage()).length };
      const sent = Array.from({ length: repeats }, (_, place) => {
        const { url: at } = gateways[place % gateways.length] ?? first;
        return send({ url: at, key: first.key }, `order-${index}`, body);
      });
      const responses = await Promise.all(sent);
      const texts = await Promise.all(responses.map((response) => response.text()));
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
      expect(new Set(texts).size).toBe(1);
      expect(responses.filter((response) => !isReplay(response))).toHaveLength(1);
      const calls = made() - before.calls;
      for (const gateway of gateways) await gateway.usage();
      const rows = (await first.usage()).length - before.rows;
      report({
        check: "idempotency",
        name: `calls and ledger rows of ${repeats} equal calls at three gateways`,
        value: `${calls} and ${rows}`,
        limit: "1 and 1",
        isMet: calls === 1 && rows === 1,
      });
      expect([calls, rows]).toEqual([1, 1]);
    }
  }, 180_000);

  test("a call whose process was killed is made anew at another gateway, and once", async () => {
    const url = await databases.server.createDatabase();
    await using simulator = startSimulator({ tokensPerSecond: 200 });
    await using dying = await startFaultProcess({
      storage: `{ url: "${url}" }`,
      auth: `{ peppers: ["${testPepper}"] }`,
      plans,
      upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}/v1" } }`,
      models:
        "{ chat-model: { kind: chat, context_window: 200000, " +
        "targets: [{ upstream: simulator, model: sound }] } }",
    });
    await using other = await start(url);
    await other.app.admin.onKeysChanged();
    const body = streamedChat("count: 1000");
    const target = { url: `http://127.0.0.1:${dying.port}`, key: dying.key };
    const running = new StreamedAnswer(await send(target, "order", body));
    await running.readFrames(3);
    const waiting = [1, 2, 3].map(() =>
      sendUntilAnswered({ url: other.url, key: dying.key }, "order", body),
    );
    await Bun.sleep(1_000);
    expect(other.simulator.truth.size).toBe(0);
    dying.serving.kill();
    expect(running.readAll()).rejects.toThrow();
    const responses = await Promise.all(waiting);
    const texts = await Promise.all(responses.map((response) => response.text()));
    expect(new Set(texts).size).toBe(1);
    expect(parseStream(texts[0] ?? "").isDone).toBe(true);
    expect(responses.filter((response) => !isReplay(response))).toHaveLength(1);
    expect(other.simulator.truth.size).toBe(1);
    expect(simulator.truth.size).toBe(1);
    // The cut call is in the spool of the process that was killed, and is counted once, too.
    await using _again = await dying.restart();
    let rows: readonly UsageRecord[] = [];
    const deadline = performance.now() + 20_000;
    while (rows.length < 2 && performance.now() < deadline) rows = await other.usage();
    expect(rows.map(({ outcome }) => outcome).toSorted()).toEqual(["completed", "interrupted"]);
  }, 180_000);
});

test("a call whose gateway was killed is made anew by its successor on the same file", async () => {
  await using simulator = startSimulator({ tokensPerSecond: 200 });
  await using dying = await startFaultProcess({
    plans,
    upstreams: `{ simulator: { kind: openai, base_url: "${simulator.url}/v1" } }`,
    models:
      "{ chat-model: { kind: chat, context_window: 200000, " +
      "targets: [{ upstream: simulator, model: sound }] } }",
  });
  const body = streamedChat("count: 1000");
  const target = { url: `http://127.0.0.1:${dying.port}`, key: dying.key };
  const running = new StreamedAnswer(await send(target, "order", body));
  await running.readFrames(3);
  dying.serving.kill();
  expect(running.readAll()).rejects.toThrow();
  await using successor = await dying.restart();
  const here = { url: successor.dataUrl, key: dying.key };
  const answers = await Promise.all([1, 2].map(() => sendUntilAnswered(here, "order", body)));
  const texts = await Promise.all(answers.map((response) => response.text()));
  expect(texts[0]).toBe(texts[1] ?? "");
  expect(parseStream(texts[0] ?? "").isDone).toBe(true);
  await until("both calls have ended", () => simulator.openCalls === 0);
  expect(simulator.truth.size).toBe(2);
}, 180_000);
