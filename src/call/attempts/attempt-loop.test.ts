import { describe, expect, test } from "bun:test";
import {
  adapterOf,
  callOf,
  modelOf,
  pipelineOf,
  plainRouting,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../../../test/support/pipeline-fixtures.ts";
import type { CallRouting } from "../../domain/usage/call-routing.ts";
import type { ChatResult } from "../../domain/chat/answer.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model, Target } from "../../domain/model.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { UpstreamAdapter } from "../../upstreams/adapter.ts";
import { type Call, type CallOptions, plainCall } from "../../snapshot/call.ts";
import { runChat } from "../chat/chat-call.ts";
import type { CallServices } from "../services.ts";
import { readChatRequest } from "../../wires/chat/read-request.ts";

const queueingPlan: Plan = {
  name: "queueing",
  limits: undefined,
  provisioned: false,
  queueTimeoutMs: 60_000,
  isIdempotent: false,
  responsesKeepMs: 0,
  uncapped: "debt",
  overrunFactor: 3,
  whenLimitsUnavailable: "local",
};

/** Consecutive calls of one kind, with the attempts and waits of each. */

type Failure = UpstreamFailureKind | Partial<UpstreamFailureDetails>;

/** What a target does at each attempt; the last entry repeats. */
type Script = readonly (Failure | "answer")[];

const answer: ChatResult = {
  choices: [
    {
      index: 0,
      blocks: [{ type: "text", text: "hello" }],
      finishReason: "stop",
      logprobs: undefined,
    },
  ],
  usage: { inputTokens: 5, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 },
  systemFingerprint: undefined,
  serviceTier: undefined,
};

/** An adapter that follows a script, without a network. */
function scripted(script: Script): UpstreamAdapter {
  let attempts = 0;
  const next = (): ChatResult => {
    const step = script[Math.min(attempts, script.length - 1)] ?? "answer";
    attempts += 1;
    if (step === "answer") return answer;
    const details = typeof step === "string" ? { kind: step } : step;
    throw new UpstreamFailure({ kind: "unavailable", message: "as scripted", ...details });
  };
  const server = adapterOf("http://127.0.0.1:1/v1");
  const request = { url: "http://127.0.0.1:1/", method: "POST", headers: {}, body: "" } as const;
  const encode = () => ({ request, decode: next });
  return { ...server, ...(server.chat && { chat: { ...server.chat, encode } }) };
}

/** A transport with empty answers: the scripts decide. */
const transport: CallServices["transport"] = () =>
  Promise.resolve({
    status: 200,
    headers: new Headers(),
    arrived: () => new Uint8Array(),
    take: () => undefined,
    isOver: true,
    whenReady: () => undefined,
  });

interface Scene {
  /** Targets of the model, by priority. */
  readonly own: readonly Script[];
  /** Targets of its fallbacks, one per model. */
  readonly fallbacks?: readonly Script[];
  /** When the caller leaves, in milliseconds. Default: never. */
  readonly leavesAfterMs?: number;
  /** Context windows of the fallbacks; the model's is 1,000. */
  readonly windows?: readonly number[];
  readonly options?: Partial<CallOptions>;
  readonly prompt?: string;
}

interface Played {
  /** `target: outcome, decision`. */
  readonly attempts: readonly string[];
  /** Waits between attempts, in milliseconds. */
  readonly waits: readonly number[];
  readonly routing: CallRouting | undefined;
  readonly error: GatewayError | undefined;
}

function world({ own, fallbacks = [], windows = [] }: Scene) {
  const upstreams = [...own, ...fallbacks].map((script, index) =>
    upstreamOf(`up${index}`, { adapter: scripted(script) }),
  );
  const aliases = fallbacks.map((_, index) => `fallback-${index}`);
  const targets = own.map((_, index) => targetOf(`up${index}`, { priority: index + 1 }));
  const model = modelOf({ targets, fallbacks: aliases });
  const stand: Model[] = aliases.map((alias, index) =>
    modelOf({
      alias,
      contextWindow: windows[index] ?? 1_000,
      targets: [targetOf(`up${own.length + index}`)],
    }),
  );
  const models = new Map([model, ...stand].map((each) => [each.alias, each]));
  const routing = { ...plainRouting, attempts: 3, firstBackoffMs: 40, longestBackoffMs: 200 };
  const snapshot = { ...snapshotOf(upstreams), routing };
  const pipeline = pipelineOf({ transport, random: () => 0.5 });
  return { model, models, snapshot, pipeline };
}

/** Runs calls of one key one after another; returns the result of the last. */
async function play(scene: Scene, calls = 1): Promise<Played> {
  const { model, models, snapshot, pipeline } = world(scene);
  let error: GatewayError | undefined;
  for (let time = 0; time < calls; time += 1) {
    const { leavesAfterMs = Infinity } = scene;
    const leaving = leavesAfterMs === Infinity ? [] : [AbortSignal.timeout(leavesAfterMs)];
    const call = callOf({
      id: `req_${time}`,
      environment: { name: "test", models },
      snapshot,
      signal: AbortSignal.any(leaving),
      options: { ...plainCall, ...scene.options },
    });
    const { prompt = "hi" } = scene;
    const messages = [{ role: "user" as const, content: prompt }];
    const chat = {
      request: readChatRequest({ model: model.alias, messages }),
      bodyBytes: 100 + prompt.length,
    };
    error = undefined;
    try {
      await runChat(call, chat, pipeline.services);
    } catch (thrown) {
      if (!(thrown instanceof GatewayError)) throw thrown;
      error = thrown;
    }
  }
  const routing = pipeline.records.at(-1)?.routing;
  const notes = routing?.attempts ?? [];
  return {
    routing,
    error,
    attempts: notes.map(({ target, outcome, decision }) =>
      [`${target.slice(0, 3)}: ${outcome}`, decision]
        .filter((part) => part !== undefined)
        .join(", "),
    ),
    waits: notes.slice(1).map(({ startMs }, index) => {
      const before = notes[index];
      return startMs - (before === undefined ? 0 : before.startMs + before.durationMs);
    }),
  };
}

const passing = [
  "throttled",
  "overloaded",
  "unavailable",
  "connect-failed",
  "timed-out",
  "broken-answer",
] as const;

describe.each(passing)("%s at the only target", (kind) => {
  test("is tried three times with growing backoff, then reported", async () => {
    const { attempts, waits, error } = await play({ own: [[kind]] });
    expect(attempts).toEqual([
      `up0: ${kind}, tried again after 30 ms`,
      `up0: ${kind}, tried again after 60 ms`,
      `up0: ${kind}, gave up: routing.attempts was reached`,
    ]);
    expect(waits[0]).toBeGreaterThanOrEqual(28);
    expect(waits[1]).toBeGreaterThanOrEqual(58);
    expect([error?.status, error?.code]).toEqual([503, "model_unavailable"]);
  });

  test("goes on to the second target at once", async () => {
    const { attempts } = await play({ own: [[kind], ["answer"]] });
    expect(attempts).toEqual([`up0: ${kind}, tried the next target`, "up1: answered"]);
  });

  test("goes on to a fallback at once, and to the next when that fails as well", async () => {
    const { attempts } = await play({ own: [[kind]], fallbacks: [[kind], ["answer"]] });
    expect(attempts).toEqual([
      `up0: ${kind}, tried the next target`,
      `up1: ${kind}, tried the next target`,
      "up2: answered",
    ]);
  });
});

test("a retry that never began is not told as one", async () => {
  const { attempts, error } = await play({ own: [["unavailable"]], leavesAfterMs: 10 });
  expect(attempts).toEqual([
    "up0: unavailable, gave up: the caller had left, or the call had to end",
  ]);
  expect(error?.code).toBe("caller_left");
});

test("every target may be tried once, even above the attempt limit", async () => {
  const down: Script = ["unavailable"];
  const { attempts } = await play({ own: [down, down, down, down, down, ["answer"]] });
  expect(attempts.map((text) => text.slice(0, 3))).toEqual([
    "up0",
    "up1",
    "up2",
    "up3",
    "up4",
    "up5",
  ]);
});

test("a Retry-After is honoured, and one that is too long goes to the caller", async () => {
  const short = { kind: "throttled", retryAfterMs: 100 } as const;
  const { attempts, waits } = await play({ own: [[short, "answer"]] });
  expect(attempts[0]).toBe("up0: throttled, tried again after 130 ms");
  expect(waits[0]).toBeGreaterThanOrEqual(100);
  const long = { kind: "throttled", retryAfterMs: 7_000 } as const;
  const told = await play({ own: [[long]] });
  expect(told.attempts).toEqual([
    "up0: throttled, gave up: the provider asked for a longer wait than routing.longest_backoff",
  ]);
  expect(told.error?.headers?.["retry-after"]).toBe("7");
});

test("no attempt begins after the caller's deadline", async () => {
  const deadlineAt = performance.now() + 50;
  const { attempts } = await play({ own: [["unavailable"]], options: { deadlineAt } });
  expect(attempts.at(-1)).toContain("gave up: the time of the call would have ended");
});

test("a lasting failure of one target does not hide that another may serve soon", async () => {
  const { error } = await play({ own: [["throttled", "throttled"], ["account-blocked"]] });
  expect(error?.headers?.["retry-after"]).toBe("2");
});

test.each(["unknown-model", "bad-credential", "account-blocked", "unsupported"] as const)(
  "%s is not retried at the same target, only at others",
  async (kind) => {
    const alone = await play({ own: [[kind]] });
    expect(alone.attempts).toEqual([
      `up0: ${kind}, gave up: no other target was left, and waiting does not help`,
    ]);
    const { attempts } = await play({ own: [[kind]], fallbacks: [["answer"]] });
    expect(attempts).toEqual([`up0: ${kind}, tried the next target`, "up1: answered"]);
  },
);

test("a stale credential is renewed once, then the next target is tried", async () => {
  const { attempts } = await play({ own: [["stale-credential"], ["answer"]] });
  expect(attempts).toEqual([
    "up0: stale-credential, tried the same target again",
    "up0: bad-credential, tried the next target",
    "up1: answered",
  ]);
});

test.each(["invalid-request", "content-refused"] as const)(
  "%s goes to the caller, even if there are other targets",
  async (kind) => {
    const { attempts, error } = await play({ own: [[kind]], fallbacks: [["answer"]] });
    expect(attempts).toEqual([`up0: ${kind}, gave up: another attempt would fail in the same way`]);
    expect(error?.status).toBe(400);
  },
);

describe("an input that is too long", () => {
  test("goes on only to a fallback with a larger window", async () => {
    const { attempts } = await play({
      own: [["context-overflow"], ["answer"]],
      fallbacks: [["answer"], ["answer"]],
      windows: [1_000, 2_000],
    });
    expect(attempts).toEqual(["up0: context-overflow, tried the next target", "up3: answered"]);
  });

  test("is a 400 when no window is larger", async () => {
    const { attempts, error } = await play({
      own: [["context-overflow"], ["answer"]],
      fallbacks: [["answer"]],
    });
    expect(attempts).toEqual([
      "up0: context-overflow, gave up: another attempt would fail in the same way",
    ]);
    expect([error?.status, error?.code]).toEqual([400, "context_length_exceeded"]);
  });

  test("for certain is not sent to models it does not fit", async () => {
    const prompt = "word ".repeat(1_001);
    const scene = { own: [["answer"]], fallbacks: [["answer"]], prompt } as const;
    const { attempts, routing } = await play({ ...scene, windows: [20_000] });
    expect(attempts).toEqual(["up1: answered"]);
    expect(routing?.candidates.at(-1)?.why).toContain("exceeds its context window of 1000 tokens");
    const { error } = await play({ ...scene, windows: [1_000] });
    expect([error?.status, error?.code]).toEqual([400, "context_length_exceeded"]);
  });
});

test("a target in service that failed once is retried before one that refuses", async () => {
  const own: readonly Script[] = [
    ["unavailable", "answer", "unavailable", "answer"],
    [{ kind: "throttled", retryAfterMs: 30_000 }],
  ];
  const first = await play({ own });
  expect(first.attempts).toEqual([
    "up0: unavailable, tried the next target",
    "up1: throttled, tried again after 30 ms",
    "up0: answered",
  ]);
  const { attempts } = await play({ own }, 2);
  expect(attempts).toEqual(["up0: unavailable, tried again after 30 ms", "up0: answered"]);
});

/** An attempt of another call of the key. */
function beginAt(target: Target, call: Call, { capacity, health }: CallServices) {
  const { id: keyId, accountId } = call.caller.key;
  const request = {
    callId: "other",
    keyId,
    accountId,
    capacityClass: "on-demand",
    provisionedPool: undefined,
    tokens: 1,
  } as const;
  const { snapshot, signal } = call;
  const entered = capacity.enter({
    request,
    candidates: [{ target }],
    snapshot,
    signal,
    waitMs: 0,
  });
  const place = "place" in entered ? entered.place : undefined;
  return { place, watch: health.tryBegin(target, { key: keyId, isStreamed: false }) };
}

/** A call that waits for a place, at two upstreams of so many. */
function waitingCall(maxInFlight: number) {
  const { model, models, snapshot, pipeline } = world({ own: [["answer"], ["answer"]] });
  const basic = callOf({ environment: { name: "test", models } });
  const upstreams = [...snapshot.upstreams.values()].map((each) => ({ ...each, maxInFlight }));
  const call = callOf({
    environment: { name: "test", models },
    snapshot: {
      ...snapshot,
      upstreams: new Map(upstreams.map((each) => [each.name, each])),
      plans: new Map([[basic.caller.key.plan, queueingPlan]]),
    },
  });
  const messages = [{ role: "user" as const, content: "hi" }];
  const chat = { request: readChatRequest({ model: model.alias, messages }), bodyBytes: 9 };
  const run = () => runChat(call, chat, pipeline.services);
  return { model, call, run, pipeline };
}

test("a call that waits while every target is at its limit goes to the first with a free slot", async () => {
  const { model, call, run, pipeline } = waitingCall(100);
  const { services } = pipeline;
  const filled = model.targets.map((target) => {
    const attempts = Array.from({ length: 40 }, () => beginAt(target, call, services));
    const overloaded = attempts.splice(0, 6);
    for (const { watch } of attempts) watch?.answered();
    for (const { watch, place } of overloaded) {
      watch?.ended({ kind: "overloaded", message: "too much" });
      place?.leave();
    }
    return attempts;
  });
  const started = run();
  await Bun.sleep(100);
  expect(pipeline.records).toEqual([]);
  for (const { place } of filled[1] ?? []) place?.leave();
  await started;
  const attempts = pipeline.records[0]?.routing?.attempts ?? [];
  expect(attempts.map(({ target }) => target)).toEqual(["up1/m"]);
});

test("a call that waits at two upstreams takes the first place that comes free", async () => {
  const { model, call, run, pipeline } = waitingCall(1);
  const { services, records } = pipeline;
  const [, second] = model.targets.map((target) => beginAt(target, call, services).place);
  const started = run();
  await Bun.sleep(20);
  expect(records).toEqual([]);
  second?.leave();
  expect(beginAt(targetOf("up1"), call, services).place).toBeUndefined();
  await started;
  expect(records[0]?.routing?.attempts.map(({ target }) => target)).toEqual(["up1/m"]);
});

describe("an outage that lasts", () => {
  test.each([...passing, { kind: "throttled", retryAfterMs: 30_000 } as const])(
    "of %p with a fallback fails none of two hundred calls, and the target gets few attempts",
    async (failure) => {
      const asked = { count: 0 };
      const { model, models, snapshot, pipeline } = world({
        own: [[failure]],
        fallbacks: [["answer"]],
      });
      for (let time = 0; time < 200; time += 1) {
        const call = callOf({ id: `req_${time}`, environment: { name: "test", models }, snapshot });
        const messages = [{ role: "user" as const, content: "hi" }];
        const chat = { request: readChatRequest({ model: model.alias, messages }), bodyBytes: 100 };
        const { answer: result } = await runChat(call, chat, pipeline.services);
        expect(result.choices).toHaveLength(1);
      }
      for (const { routing } of pipeline.records) {
        asked.count += routing?.attempts.filter(({ target }) => target === "up0/m").length ?? 0;
      }
      expect(asked.count).toBeLessThanOrEqual(5);
      const [first, last] = pipeline.records.at(-1)?.routing?.candidates ?? [];
      expect(first?.why).toBe("fallback; priority 1");
      expect(last?.why).toMatch(/^last resort; out /);
    },
  );

  test("without another target is bounded by the retry budget, and reported as such", async () => {
    const scene: Scene = { own: [["unavailable"]] };
    const { model, models, snapshot, pipeline } = world(scene);
    const empty = { began: () => undefined, tryTake: () => false };
    const services = { ...pipeline.services, budget: { retries: empty, hedges: empty } };
    const call = callOf({ environment: { name: "test", models }, snapshot });
    const messages = [{ role: "user" as const, content: "hi" }];
    const chat = { request: readChatRequest({ model: model.alias, messages }), bodyBytes: 100 };
    const error = await runChat(call, chat, services).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "model_unavailable", status: 503 });
    expect(pipeline.records[0]?.routing?.attempts.map(({ decision }) => decision)).toEqual([
      "gave up: the retry budget of the target was used up (routing.retry_budget)",
    ]);
  });
});

test("skipped targets are noted with the rule", async () => {
  const { model, models, snapshot, pipeline } = world({
    own: [["unavailable"]],
    fallbacks: [["answer"], ["unavailable"]],
  });
  const call = callOf({ environment: { name: "test", models }, snapshot });
  const { caller } = call;
  const key = { ...caller.key, allowedModels: [model.alias, "fallback-1"] };
  const messages = [{ role: "user" as const, content: "hi" }];
  const chat = { request: readChatRequest({ model: model.alias, messages }), bodyBytes: 100 };
  const bound = { ...call, caller: { ...caller, key } };
  await runChat(bound, chat, pipeline.services).catch(() => undefined);
  const whys = pipeline.records[0]?.routing?.candidates.map(
    ({ model: alias, why }) => `${alias}: ${why}`,
  );
  expect(whys).toEqual([
    `${model.alias}: priority 1`,
    "fallback-1: fallback; priority 1",
    "fallback-0: fallback left out; the key may not use it",
  ]);
});
