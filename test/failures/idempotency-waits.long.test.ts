import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { errorOf, parseStream } from "../support/bodies.ts";
import { targetAt, upstreamKinds, type UpstreamKind } from "../support/gateway.ts";
import {
  chat,
  startIdempotentGateway,
  StreamedAnswer,
  streamedChat,
  until,
  type IdempotentGateway,
} from "../support/idempotent-gateway.ts";
import { bearer, Operator } from "../support/operator.ts";
import { report } from "../support/scorecard.ts";

const callers = 5;

const modelAt = (kind: UpstreamKind, name: string, model: string): string => `
  ${name}:
    kind: chat
    context_window: 200000
    targets: [${targetAt(kind, { model, family: "claude-4" })}]`;

let keys = 0;
const newKey = (): string => `repeated-${(keys += 1)}`;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  let bench: IdempotentGateway;
  beforeAll(async () => {
    bench = await startIdempotentGateway({
      kind,
      simulator: { tokensPerSecond: 100, firstTokenDelayMs: 200 },
      sections: {
        streams: "{ hold_headers: 100ms, write_timeout: 20s }",
        // Half of them for one account.
        idempotency: "{ waiting_limit: 8 }",
        models: [
          modelAt(kind, "chat-model", "sound"),
          modelAt(kind, "broken", "fault-error-event-mid-stream"),
          modelAt(kind, "refusing", "fault-bad-request-400"),
        ].join(""),
      },
    });
  });
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
  });

  /** The rows of calls since then. */
  async function rowsSince(before: ReadonlySet<string>): Promise<readonly UsageRecord[]> {
    return (await bench.gateway.usage()).filter(({ id }) => !before.has(id));
  }

  async function knownRows(): Promise<ReadonlySet<string>> {
    return new Set((await bench.gateway.usage()).map(({ id }) => id));
  }

  const isUpstreamFree = (): boolean => bench.gateway.simulator.openCalls === 0;

  test(`of ${callers} equal streams at once one is made, and all get its frames`, async () => {
    const key = newKey();
    const body = streamedChat("count: 60", { stream_options: { include_usage: true } });
    const before = { rows: await knownRows(), calls: bench.upstreamCalls() };
    const first = new StreamedAnswer(await bench.send(key, body));
    const sent = Array.from({ length: callers - 1 }, () => bench.send(key, body));
    const whole = withoutComments(await first.readAll());
    expect(parseStream(whole).isDone).toBe(true);
    const others = await Promise.all(sent);
    const texts = await Promise.all(others.map((response) => response.text()));
    expect(texts).toEqual(texts.map(() => whole));
    expect(others.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual(
      others.map(() => "true"),
    );
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    const rows = await rowsSince(before.rows);
    const made = bench.upstreamCalls() - before.calls;
    report({
      check: "idempotency",
      name: `upstream calls and ledger rows of ${callers} equal streams at once (${kind})`,
      value: `${made} and ${rows.length}`,
      limit: "1 and 1",
      isMet: made === 1 && rows.length === 1,
    });
    const ids = new Set(others.map(({ headers }) => headers.get("x-request-id")));
    expect(ids.size).toBe(callers - 1);
    expect(made).toBe(1);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ outcome: "completed", outputTokens: 60 });
    expect(rows[0]?.id).toBe(first.headers.get("x-request-id") ?? "");
  });

  test(`of ${callers} equal unstreamed calls at once one is made`, async () => {
    const key = newKey();
    const before = { rows: await knownRows(), calls: bench.upstreamCalls() };
    const sent = Array.from({ length: callers }, () => bench.send(key, chat("count: 20")));
    const responses = await Promise.all(sent);
    const texts = await Promise.all(responses.map((response) => response.text()));
    expect(new Set(texts).size).toBe(1);
    const replays = responses.filter(({ headers }) => headers.has("idempotent-replayed"));
    expect(replays).toHaveLength(callers - 1);
    expect(bench.upstreamCalls()).toBe(before.calls + 1);
    expect(await rowsSince(before.rows)).toHaveLength(1);
  });

  test("another body is refused while the call runs", async () => {
    const key = newKey();
    const running = new StreamedAnswer(await bench.send(key, streamedChat("count: 30")));
    await running.readFrames(1);
    const other = await bench.send(key, streamedChat("count: 31"));
    expect(other.status).toBe(409);
    expect((await errorOf(other)).code).toBe("idempotency_key_reused");
    expect(parseStream(await running.readAll()).isDone).toBe(true);
  });

  test("the call ends when its caller leaves, is billed as delivered, and a waiting repeat makes it anew", async () => {
    const key = newKey();
    const body = streamedChat("count: 200");
    const rows = await knownRows();
    const leaving = new AbortController();
    const first = new StreamedAnswer(await bench.send(key, body, leaving));
    const repeat = bench.send(key, body);
    await first.readFrames(5);
    leaving.abort();
    const anew = await repeat;
    expect(anew.headers.get("idempotent-replayed")).toBeNull();
    const text = withoutComments(await anew.text());
    expect(parseStream(text).isDone).toBe(true);
    const [second, cut] = await rowsSince(rows);
    expect(cut).toMatchObject({ outcome: "abandoned", status: 499, usageSource: "counted" });
    expect(cut?.outputTokens).toBeLessThan(200);
    expect(second).toMatchObject({ outcome: "completed", outputTokens: 200 });
    const replay = await bench.send(key, body);
    expect(await replay.text()).toBe(text);
  });

  test("an unstreamed call ends when its caller leaves, too", async () => {
    const key = newKey();
    const body = chat("count: 5000");
    const leaving = new AbortController();
    const sent = bench.send(key, body, leaving);
    await until("the upstream is busy", () => bench.gateway.simulator.openCalls === 1);
    leaving.abort();
    expect(sent).rejects.toThrow();
    await until("the upstream is free", isUpstreamFree);
  });

  test("a repeat that leaves, or whose timeout passes, changes nothing for the call", async () => {
    const key = newKey();
    const body = streamedChat("count: 100");
    const before = bench.upstreamCalls();
    const running = new StreamedAnswer(await bench.send(key, body));
    const leaving = new AbortController();
    const left = bench.send(key, body, leaving);
    const hasty = await bench.send(key, body, { headers: { "x-sluice-timeout-ms": "100" } });
    expect(hasty.status).toBe(408);
    expect((await errorOf(hasty)).code).toBe("deadline_exceeded");
    leaving.abort();
    expect(left).rejects.toThrow();
    expect(parseStream(await running.readAll()).isDone).toBe(true);
    expect(bench.upstreamCalls()).toBe(before + 1);
  });

  test("repeats beyond the limit are told to come again, and the call goes on", async () => {
    const key = newKey();
    const body = streamedChat("count: 100");
    const running = new StreamedAnswer(await bench.send(key, body));
    const sent = Array.from({ length: 5 }, () => bench.send(key, body));
    const early = await Promise.race(sent);
    expect(early.status).toBe(409);
    expect(early.headers.get("retry-after")).toBe("1");
    expect(early.headers.get("x-should-retry")).toBe("true");
    expect(await errorOf(early)).toMatchObject({
      code: "idempotency_key_in_use",
      param: "Idempotency-Key",
    });
    expect(parseStream(await running.readAll()).isDone).toBe(true);
    const responses = await Promise.all(sent);
    expect(responses.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 200, 200, 200, 409,
    ]);
  });

  test("the repeats of a refused call make it themselves, one after the other", async () => {
    const key = newKey();
    const body = { ...chat("hi"), model: "refusing" };
    const before = bench.upstreamCalls();
    const responses = await Promise.all([1, 2, 3].map(() => bench.send(key, body)));
    expect(responses.map(({ status }) => status)).toEqual([400, 400, 400]);
    expect(bench.upstreamCalls()).toBe(before + 3);
  });

  test("the repeat of a cut stream makes the call anew", async () => {
    const key = newKey();
    const body = { ...streamedChat("count: 40"), model: "broken" };
    const before = bench.upstreamCalls();
    const streams = await Promise.all([bench.send(key, body), bench.send(key, body)]);
    for (const stream of streams) {
      const { chunks, isDone } = parseStream(withoutComments(await stream.text()));
      expect(isDone).toBe(false);
      expect(chunks.at(-1)?.error?.code).toBe("model_unavailable");
      expect(stream.headers.get("idempotent-replayed")).toBeNull();
    }
    expect(bench.upstreamCalls()).toBe(before + 2);
  });

  test("a revoked key ends the call and all that wait for it", async () => {
    const { id, text } = await bench.gateway.createKey();
    const key = newKey();
    const body = streamedChat("count: 5000");
    const running = new StreamedAnswer(await bench.send(key, body, bearer(text)));
    const sent = [1, 2].map(() => bench.send(key, body, bearer(text)));
    await running.readFrames(10);
    await new Operator(bench.gateway).revoke(id);
    expect(parseStream(await running.readAll()).chunks.at(-1)?.error?.code).toBe("invalid_api_key");
    for (const response of await Promise.all(sent)) {
      expect(response.status).toBe(401);
      expect((await errorOf(response)).code).toBe("invalid_api_key");
    }
    await until("the upstream is free", isUpstreamFree);
  });
});

test("repeats that wait are calls under way, of which there is a bounded number", async () => {
  await using bench = await startIdempotentGateway({
    simulator: { tokensPerSecond: 100 },
    sections: { overload: "{ loop_delay: 10s, max_calls: 10 }" },
  });
  const body = streamedChat("count: 200");
  const running = new StreamedAnswer(await bench.send("one", body));
  const sent = Array.from({ length: 40 }, () => bench.send("one", body));
  const refused = (await Promise.race(sent)).status;
  expect(refused).toBe(503);
  const text = withoutComments(await running.readAll());
  const responses = await Promise.all(sent);
  const answered = responses.filter(({ status }) => status === 200);
  expect(answered.length).toBeLessThan(10);
  expect(answered.length + responses.filter(({ status }) => status === 503).length).toBe(40);
  for (const response of answered) expect(await response.text()).toBe(text);
  expect(bench.upstreamCalls()).toBe(1);
});

function withoutComments(text: string): string {
  return text.replaceAll(/^: keep-alive\n\n/gm, "");
}
