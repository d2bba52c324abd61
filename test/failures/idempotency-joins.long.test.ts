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
const newKey = (): string => `joined-${(keys += 1)}`;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  let bench: IdempotentGateway;
  beforeAll(async () => {
    bench = await startIdempotentGateway({
      kind,
      simulator: { tokensPerSecond: 100, firstTokenDelayMs: 200 },
      sections: {
        streams: "{ hold_headers: 100ms, write_timeout: 20s }",
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

  test(`${callers} concurrent callers share one stream, also later ones`, async () => {
    const key = newKey();
    const body = streamedChat("count: 60", { stream_options: { include_usage: true } });
    const before = { rows: await knownRows(), calls: bench.upstreamCalls() };
    const first = new StreamedAnswer(await bench.send(key, body));
    const early = bench.send(key, body);
    await first.readFrames(3);
    const others = [await early];
    for (let count = 2; count < callers; count += 1) others.push(await bench.send(key, body));
    expect(bench.gateway.simulator.openCalls).toBeLessThanOrEqual(1);
    const texts = await Promise.all(others.map((response) => response.text()));
    const whole = withoutComments(await first.readAll());
    expect(parseStream(whole).isDone).toBe(true);
    expect(texts.map(withoutComments)).toEqual(texts.map(() => whole));
    expect(others.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual(
      others.map(() => "true"),
    );
    expect(first.headers.get("idempotent-replayed")).toBeNull();
    const rows = await rowsSince(before.rows);
    const made = bench.upstreamCalls() - before.calls;
    report({
      check: "idempotency",
      name: `upstream calls and ledger rows of ${callers} callers who share a stream (${kind})`,
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
    // Afterwards the same answer is a replay.
    const replay = await bench.send(key, body);
    expect(await replay.text()).toBe(whole);
  });

  test(`${callers} concurrent callers share one unstreamed answer`, async () => {
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

  test("the call continues when the first caller and some of the joined ones leave", async () => {
    const key = newKey();
    const body = streamedChat("count: 60");
    const rows = await knownRows();
    const leaving = [new AbortController(), new AbortController()];
    const streams: StreamedAnswer[] = [];
    for (const { signal } of leaving) {
      streams.push(new StreamedAnswer(await bench.send(key, body, { signal })));
    }
    await Promise.all(streams.map((stream) => stream.readFrames(3)));
    const staying = new StreamedAnswer(await bench.send(key, body));
    leaving[0]?.abort();
    await staying.readFrames(15);
    leaving[1]?.abort();
    const text = await staying.readAll();
    expect(parseStream(text).isDone).toBe(true);
    await until("the upstream is free", isUpstreamFree);
    expect(bench.gateway.simulator.truth.entries.at(-1)?.clientLeft).toBe(false);
    expect(await rowsSince(rows)).toMatchObject([{ outcome: "completed", outputTokens: 60 }]);
    const replay = await bench.send(key, body);
    expect(await replay.text()).toBe(withoutComments(text));
  });

  test("the call ends when the last caller leaves, is billed as delivered, and is then made anew", async () => {
    const key = newKey();
    const body = streamedChat("count: 5000");
    const rows = await knownRows();
    const leaving = [new AbortController(), new AbortController()];
    const streams: StreamedAnswer[] = [];
    for (const { signal } of leaving) {
      streams.push(new StreamedAnswer(await bench.send(key, body, { signal })));
    }
    await Promise.all(streams.map((stream) => stream.readFrames(5)));
    // In the order of their arrival, then in reverse.
    for (const { signal } of leaving) expect(signal.aborted).toBe(false);
    leaving[0]?.abort();
    leaving[1]?.abort();
    await until("the upstream is free", isUpstreamFree);
    expect(bench.gateway.simulator.truth.entries.at(-1)?.clientLeft).toBe(true);
    const [row] = await rowsSince(rows);
    expect(row).toMatchObject({ outcome: "abandoned", status: 499, usageSource: "counted" });
    expect(row?.outputTokens).toBeGreaterThan(0);
    expect(row?.outputTokens).toBeLessThan(5_000);
    const again = new AbortController();
    const anew = await bench.send(key, body, { signal: again.signal });
    expect(anew.headers.get("idempotent-replayed")).toBeNull();
    await new StreamedAnswer(anew).readFrames(2);
    again.abort();
    await until("the upstream is free", isUpstreamFree);
    expect(await rowsSince(rows)).toHaveLength(2);
  });

  test("an unstreamed answer ends when its last caller leaves", async () => {
    const key = newKey();
    const body = chat("count: 5000");
    const leaving = [new AbortController(), new AbortController()];
    const sent = leaving.map(({ signal }) => bench.send(key, body, { signal }));
    await until("the upstream is busy", () => bench.gateway.simulator.openCalls === 1);
    leaving[1]?.abort();
    expect(sent[1]).rejects.toThrow();
    await Bun.sleep(50);
    expect(bench.gateway.simulator.openCalls).toBe(1);
    leaving[0]?.abort();
    expect(sent[0]).rejects.toThrow();
    await until("the upstream is free", isUpstreamFree);
  });

  test("all callers of a refused call get the refusal, and the next call is made anew", async () => {
    const key = newKey();
    const body = { ...chat("hi"), model: "refusing" };
    const before = bench.upstreamCalls();
    const sent = Array.from({ length: callers }, () => bench.send(key, body));
    const responses = await Promise.all(sent);
    const errors = await Promise.all(responses.map(errorOf));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([400]));
    expect(new Set(errors.map(({ message }) => message)).size).toBe(1);
    expect(bench.upstreamCalls()).toBe(before + 1);
    const other = await bench.send(key, body);
    await other.text();
    expect(bench.upstreamCalls()).toBe(before + 2);
  });

  test("all callers of a cut stream get the cut, and the next call is made anew", async () => {
    const key = newKey();
    const body = { ...streamedChat("count: 40"), model: "broken" };
    const before = bench.upstreamCalls();
    const streams = await Promise.all([bench.send(key, body), bench.send(key, body)]);
    const texts = await Promise.all(streams.map((response) => response.text()));
    const parsed = texts.map((text) => parseStream(withoutComments(text)));
    expect(parsed[1]).toEqual(parsed[0] ?? parsed[1]);
    expect(parsed[0]?.isDone).toBe(false);
    expect(parsed[0]?.chunks.at(-1)?.error?.code).toBe("model_unavailable");
    const again = await bench.send(key, body);
    expect(again.headers.get("idempotent-replayed")).toBeNull();
    await again.text();
    expect(bench.upstreamCalls()).toBe(before + 2);
  });

  test("a revoked key ends the call for all its callers", async () => {
    const { id, text } = await bench.gateway.createKey();
    const key = newKey();
    const body = streamedChat("count: 5000");
    const streams: StreamedAnswer[] = [];
    for (let count = 0; count < 3; count += 1) {
      streams.push(new StreamedAnswer(await bench.send(key, body, bearer(text))));
    }
    await Promise.all(streams.map((stream) => stream.readFrames(2)));
    await new Operator(bench.gateway).revoke(id);
    for (const stream of streams) {
      expect(parseStream(await stream.readAll()).chunks.at(-1)?.error?.code).toBe(
        "invalid_api_key",
      );
    }
    await until("the upstream is free", isUpstreamFree);
  });

  test("each caller has its own timeout", async () => {
    const key = newKey();
    const body = streamedChat("count: 80");
    const hasty = { headers: { "x-sluice-timeout-ms": "500" } };
    const first = new StreamedAnswer(await bench.send(key, body, hasty));
    const second = new StreamedAnswer(await bench.send(key, body));
    const [cut, whole] = await Promise.all([first.readAll(), second.readAll()]);
    expect(parseStream(cut).chunks.at(-1)?.error?.code).toBe("deadline_exceeded");
    expect(parseStream(whole).isDone).toBe(true);
    const alone = await bench.send(newKey(), chat("count: 5000"), hasty);
    expect(alone.status).toBe(408);
    expect((await errorOf(alone)).code).toBe("deadline_exceeded");
    await until("the upstream is free", isUpstreamFree);
    expect((await bench.gateway.usage())[0]).toMatchObject({
      status: 408,
      code: "deadline_exceeded",
    });
  });
});

function withoutComments(text: string): string {
  return text.replaceAll(/^: keep-alive\n\n/gm, "");
}
