import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Socket } from "bun";
import { chatOf, errorOf, streamOf } from "../support/bodies.ts";
import {
  bedrockUpstream,
  simulatorUpstream,
  startGateway,
  targetAt,
  upstreamKinds,
  type TestGateway,
  type UpstreamKind,
} from "../support/gateway.ts";

const target = (kind: UpstreamKind, model: string, more?: string): string =>
  targetAt(kind, { model, family: "claude-4" }, more);

/** For each fault, a model whose first target shows it and whose second has none. */
function modelsFor(faults: readonly string[], kind: UpstreamKind): string {
  return faults
    .map(
      (fault) => `
  after-${fault}:
    kind: chat
    context_window: 200000
    targets:
      - ${target(kind, `fault-${fault}`, "upstream: simulator, priority: 1")}
      - ${target(kind, "sound", "upstream: simulator, priority: 2")}
  only-${fault}:
    kind: chat
    context_window: 200000
    targets: [${target(kind, `fault-${fault}`)}]`,
    )
    .join("");
}

/** One fault of each class; the fault matrix has all of them. */
const refused = [
  "throttle-429",
  "throttle-429-bare",
  "error-500",
  "html-502",
  "non-sse-200",
  "error-200",
  "model-not-found-404",
];
const lost = ["cut-before-headers", "tls-fail"];
/** Permanent errors, marked as not retryable for callers. */
const ofTheOperator = [
  "bad-credential",
  "model-not-found-404",
  "exception-access-denied",
  "exception-operation-not-allowed",
  "exception-model-identifier",
];
/** Longer than this gateway waits. */
const asksToWait = ["throttle-429", "exception-model-not-ready"];
const callersOwn = ["bad-request-400", "context-overflow"];

interface Listed {
  readonly retried: readonly string[];
  /** Retried at the same target once, then at the next. */
  readonly renewed: readonly string[];
  readonly final: readonly string[];
}

/** Faults of the kind before the first event, streamed or not. */
const listed: Readonly<Record<UpstreamKind, Listed>> = {
  openai: { retried: [...refused, ...lost, "bad-credential"], renewed: [], final: callersOwn },
  bedrock: {
    retried: [
      ...refused,
      ...lost,
      "exception-model-identifier",
      "exception-access-denied",
      "exception-operation-not-allowed",
      "exception-throttling-tokens",
      "exception-model-not-ready",
      "exception-model-error",
      "exception-empty",
      "first-frame-throttling",
      "mid-stream-throttling-1",
    ],
    renewed: ["bad-credential", "exception-expired-token"],
    final: [...callersOwn, "first-frame-validation"],
  },
};

const chat = (model: string, isStreamed: boolean) => ({
  model,
  stream: isStreamed,
  messages: [{ role: "user", content: "echo: one two three four five six seven eight" }],
});

/** A port that accepts connections and never answers. */
function startSilentPort(): { readonly port: number; stop(): void } {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (_socket: Socket) => undefined },
  });
  return { port: server.port, stop: () => server.stop(true) };
}

/** An upstream of the kind at an address that is not the simulator's. */
const elsewhere = (kind: UpstreamKind, port: number, more: string): string => {
  const origin = `http://127.0.0.1:${port}`;
  if (kind === "bedrock") return bedrockUpstream(origin, more);
  return `{ kind: openai, base_url: "${origin}/v1", ${more} }`;
};

const twoTargets = (kind: UpstreamKind, first = "simulated-first"): string => `
  chat-model:
    kind: chat
    context_window: 200000
    targets:
      - ${target(kind, first, "upstream: first, priority: 1")}
      - ${target(kind, "sound", "upstream: simulator, priority: 2")}`;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  const { retried, renewed, final } = listed[kind];
  let gateway: TestGateway;
  const start = async (): Promise<void> => {
    const faults = [...retried, ...renewed, ...final, "reset"];
    gateway = await startGateway({ kind, sections: { models: modelsFor(faults, kind) } });
  };
  const stop = async (): Promise<void> => {
    await gateway[Symbol.asyncDispose]();
  };

  async function rowOf(response: Response) {
    const id = response.headers.get("x-request-id");
    return (await gateway.usage()).find((row) => row.id === id);
  }

  describe.each([
    ["plain", false],
    ["streamed", true],
  ] as const)("a %s call", (_, isStreamed) => {
    // Paused targets are not tried first, so each table has its own targets.
    beforeAll(start);
    afterAll(stop);

    test.each(retried)(
      "whose first target fails with %s is served by the second",
      async (fault) => {
        const response = await gateway.post(
          "/v1/chat/completions",
          chat(`after-${fault}`, isStreamed),
        );
        expect(response.status).toBe(200);
        if (isStreamed) expect((await streamOf(response)).isDone).toBe(true);
        else expect((await chatOf(response)).choices[0]?.finish_reason).toBe("stop");
        const expected = { attempts: 2, target: "simulator/sound", outcome: "completed" };
        expect(await rowOf(response)).toMatchObject(expected);
      },
    );

    test.each(renewed)(
      "that fails with %s is retried there with a fresh credential, then at another target",
      async (fault) => {
        const response = await gateway.post(
          "/v1/chat/completions",
          chat(`after-${fault}`, isStreamed),
        );
        expect(response.status).toBe(200);
        await response.text();
        expect(await rowOf(response)).toMatchObject({ attempts: 3, target: "simulator/sound" });
      },
    );

    test.each(final)("that is refused with %s is not retried", async (fault) => {
      const response = await gateway.post(
        "/v1/chat/completions",
        chat(`after-${fault}`, isStreamed),
      );
      expect(response.status).toBe(400);
      await response.text();
      expect(await rowOf(response)).toMatchObject({ attempts: 1, outcome: "failed", status: 400 });
    });

    test.each(retried)("with %s and no other target ends as model_unavailable", async (fault) => {
      const response = await gateway.post(
        "/v1/chat/completions",
        chat(`only-${fault}`, isStreamed),
      );
      const { code, type } = await errorOf(response);
      expect([response.status, code, type]).toEqual([503, "model_unavailable", "server_error"]);
      const retryAfter = response.headers.get("retry-after");
      const shouldRetry = response.headers.get("x-should-retry");
      if (ofTheOperator.includes(fault)) expect([shouldRetry, retryAfter]).toEqual(["false", null]);
      else expect([shouldRetry, Number(retryAfter) >= 1]).toEqual(["true", true]);
      const row = await rowOf(response);
      expect(row).toMatchObject({ outcome: "failed", inputTokens: 0, outputTokens: 0 });
      // Transient failures are retried; permanent ones and long waits are not.
      const isFinal = ofTheOperator.includes(fault) || asksToWait.includes(fault);
      expect(row?.attempts).toBe(isFinal ? 1 : 3);
    });
  });

  describe("for any call", () => {
    beforeAll(start);
    afterAll(stop);

    test("nothing is retried once the caller has the first event", async () => {
      const response = await gateway.post("/v1/chat/completions", chat("after-reset", true));
      expect(response.status).toBe(200);
      const { chunks, isDone } = await streamOf(response);
      expect(isDone).toBe(false);
      expect(chunks.at(-1)?.error?.code).toBe("model_unavailable");
      expect(chunks.length).toBeGreaterThan(1);
      expect(await rowOf(response)).toMatchObject({ attempts: 1, outcome: "failed" });
    });

    test("the provider's Retry-After is passed on", async () => {
      const response = await gateway.post("/v1/chat/completions", chat("only-throttle-429", false));
      await response.text();
      expect(response.headers.get("retry-after-ms")).toBe("2000");
    });

    test("an upstream whose stream never begins is abandoned after its first-byte timeout", async () => {
      const silent = startSilentPort();
      const timeouts = "timeouts: { connect: 100ms, first_byte: 200ms }";
      const first = elsewhere(kind, silent.port, timeouts);
      await using local = await startGateway({ kind, sections: sectionsWith(first) });
      const response = await local.post("/v1/chat/completions", chat("chat-model", true));
      expect(response.status).toBe(200);
      await response.text();
      expect(local.log.join("\n")).toContain("timed-out");
      silent.stop();
    });

    function sectionsWith(first: string): Record<string, string> {
      const simulator = simulatorUpstream(gateway.simulator, kind);
      return {
        models: twoTargets(kind),
        upstreams: `
  first: ${first}
  simulator: ${simulator}`,
      };
    }

    test("an upstream with a closed port is abandoned at once", async () => {
      const closed = startSilentPort();
      closed.stop();
      const first = elsewhere(kind, closed.port, "");
      await using local = await startGateway({ kind, sections: sectionsWith(first) });
      const response = await local.post("/v1/chat/completions", chat("chat-model", true));
      expect((await streamOf(response)).isDone).toBe(true);
      expect(local.log.join("\n")).toContain("connect-failed");
    });

    test("an upstream at its max_in_flight is skipped, and its places are released", async () => {
      const first = simulatorUpstream(gateway.simulator, kind, "max_in_flight: 2");
      const sections = { ...sectionsWith(first), models: twoTargets(kind, "fault-stall-mid") };
      await using local = await startGateway({ kind, sections });
      const ask = () => local.post("/v1/chat/completions", chat("chat-model", true));
      const targets = async () =>
        (await local.usage())
          .map(({ target }) => target ?? "")
          .toSorted((one, other) => (one < other ? -1 : 1));
      const stalled = [await ask(), await ask()];
      for (let call = 0; call < 4; call++) await (await ask()).text();
      expect(await targets()).toEqual(Array.from({ length: 4 }, () => "simulator/sound"));
      for (const response of stalled) await response.body?.cancel();
      while ((await targets()).length < 6) await Bun.sleep(5);
      stalled.push(await ask());
      await stalled[2]?.body?.cancel();
      while ((await targets()).length < 7) await Bun.sleep(5);
      expect((await targets()).slice(0, 3)).toEqual(
        Array.from({ length: 3 }, () => "first/fault-stall-mid"),
      );
    });
  });
});
