import { expect } from "bun:test";
import { systemClock } from "../../src/domain/clock.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import {
  anthropicUpstream,
  bedrockUpstream,
  type ChatKind,
  simulatorUpstream,
  startGateway,
  targetAt,
  type TestGateway,
} from "../support/gateway.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";
import { type Simulator, startSimulator, type TruthEntry } from "../../simulator/simulator.ts";
import { faultTables, noHandshake } from "./fault-table.ts";

/** The text that an echoing model answers, also the input of embeddings. */
export const words = "one two three four five six seven eight";

export const callNames = ["a whole answer", "a stream", "embeddings"] as const;
export type CallName = (typeof callNames)[number] | "embeddings in one batch";

/** On Bedrock, Cohere's models take many texts a request, Titan's one. Anthropic has no embeddings. */
export const callNamesOf: Readonly<Record<ChatKind, readonly CallName[]>> = {
  openai: callNames,
  bedrock: [...callNames, "embeddings in one batch"],
  anthropic: callNames.slice(0, 2),
};

export interface CallSeen {
  readonly response: Response;
  readonly text: string;
  readonly row: UsageRecord;
  /** The call's entries in the upstreams' truth logs. */
  readonly atFirst: readonly TruthEntry[];
  readonly atSecond: readonly TruthEntry[];
}

const limits = { requestsPerMinute: 1_000, tokensPerMinute: 10_000_000 };

const callDeadlineMs = 240_000;
const releaseDeadlineMs = 10_000;

/**
 * A gateway with an alias for every fault of its upstream, which has one place. There may be a
 * second upstream without faults.
 */
export class FaultBench implements AsyncDisposable {
  readonly gateway: TestGateway;
  readonly #second: Simulator;
  readonly #kind: ChatKind;
  readonly #limits: MemoryLimitStore;
  #calls = 0;

  private constructor(gateway: TestGateway, second: Simulator, more: BenchParts) {
    this.gateway = gateway;
    this.#second = second;
    this.#kind = more.kind;
    this.#limits = more.limits;
  }

  static async start(kind: ChatKind, hasSecond = false): Promise<FaultBench> {
    const store = new MemoryLimitStore({
      clock: systemClock,
      random: Math.random,
    });
    const gateway = await startGateway({ kind, overrides: { limits: store } });
    const second = startSimulator();
    const attempts = hasSecond ? 3 : 1;
    await gateway.reconfigure({
      routing: `{ attempts: ${attempts}, retry_floor: 1000, first_backoff: 1ms, out: { failures: 1000 } }`,
      models: modelsOf(kind, hasSecond),
      upstreams: upstreamsOf(kind, gateway.simulator, second),
    });
    return new FaultBench(gateway, second, { kind, limits: store });
  }

  /** Calls with a new key, whose remaining limits must match the ledger. */
  async call(name: CallName, fault: string): Promise<CallSeen> {
    const { gateway } = this;
    this.#calls += 1;
    const mark = `cell-${this.#calls}`;
    const { id: keyId, text: key } = await gateway.createKey({ limits });
    const { path, body } = requestOf(name, fault, { kind: this.#kind, mark });
    const headers = { authorization: `Bearer ${key}` };
    const signal = AbortSignal.timeout(callDeadlineMs);
    const response = await gateway.post(path, body, { headers, signal });
    const text = await response.clone().text();
    await this.untilUpstreamsAreFree();
    // The gateway also probes a target that hung.
    const ofCall = ({ truth }: Simulator): readonly TruthEntry[] =>
      truth.entries.filter((entry) => entry.mark === mark);
    const atFirst = ofCall(gateway.simulator);
    const atSecond = ofCall(this.#second);
    const rows = (await gateway.usage()).filter((row) => row.keyId === keyId);
    expect(rows.map(({ id }) => id)).toEqual([response.headers.get("x-request-id") ?? ""]);
    const [row] = rows;
    if (row === undefined) throw new Error("no row");
    const left = this.#limits.peek(minuteScopes(`key:${keyId}`, limits));
    expect(left.remainingTokens).toBe(limits.tokensPerMinute - row.inputTokens - row.outputTokens);
    expect(left.remainingRequests).toBe(limits.requestsPerMinute - 1);
    expect(this.#limits.state().calls.length).toBe(0);
    return { response, text, row, atFirst, atSecond };
  }

  /** Whether the first upstream's only place was released: another call gets it. */
  async isPlaceFree(): Promise<boolean> {
    const deadline = Date.now() + releaseDeadlineMs;
    const { path, body } = requestOf("a stream", "ok", { kind: this.#kind, mark: "place" });
    // An upstream sees the end of an answer slightly before its reader.
    while (Date.now() < deadline) {
      const before = this.gateway.simulator.truth.size;
      const { status } = await this.gateway.post(path, body).then(async (response) => {
        await response.text();
        return response;
      });
      await this.untilUpstreamsAreFree();
      if (status === 200 && this.gateway.simulator.truth.size > before) return true;
    }
    return false;
  }

  async untilUpstreamsAreFree(): Promise<void> {
    const deadline = Date.now() + releaseDeadlineMs;
    while (this.gateway.simulator.openCalls + this.#second.openCalls > 0) {
      if (Date.now() > deadline) throw new Error("an upstream call goes on");
      await Bun.sleep(1);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
    await this.#second[Symbol.asyncDispose]();
  }
}

interface BenchParts {
  readonly kind: ChatKind;
  readonly limits: MemoryLimitStore;
}

/** Faults outside the table, which have their own tests. */
export const furtherFaults = ["flap", "throttle-429-7000", "throttled-burst"];

/** Each call has its own target, so that health does not affect other calls. */
function modelsOf(kind: ChatKind, hasSecond: boolean): string {
  const faults = [...faultTables[kind].map(([fault]) => fault), ...furtherFaults];
  return faults
    .flatMap((fault) => callNamesOf[kind].map((name) => modelOf(name, fault, { kind, hasSecond })))
    .join("");
}

const aliases: Readonly<Record<CallName, string>> = {
  "a whole answer": "chat",
  "a stream": "chat-stream",
  embeddings: "embed",
  "embeddings in one batch": "embed-batch",
};
const families: Readonly<Record<CallName, string>> = {
  "a whole answer": "claude-4",
  "a stream": "claude-4",
  embeddings: "titan-embed-v2",
  "embeddings in one batch": "cohere-embed-v3",
};

function modelOf(
  name: CallName,
  fault: string,
  { kind, hasSecond }: { readonly kind: ChatKind; readonly hasSecond: boolean },
): string {
  const alias = aliases[name];
  const family = families[name];
  const isChat = alias.startsWith("chat");
  const shown = fault === noHandshake ? "well" : `fault-${fault}`;
  const model = `simulated-${alias}-${shown}`;
  const first = targetAt(kind, { model, family }, `upstream: ${upstreamOf(fault)}, priority: 1`);
  const well = targetAt(
    kind,
    { model: `simulated-${alias}`, family },
    "upstream: second, priority: 2",
  );
  return `
  ${alias}-${fault}:
    kind: ${isChat ? "chat" : "embedding"}
    context_window: 200000
    ${isChat ? "max_output_tokens: 64000" : ""}
    targets: [${hasSecond ? `${first}, ${well}` : first}]`;
}

function upstreamOf(fault: string): string {
  if (fault === noHandshake) return "secure";
  // On a busy machine a stream of a million deltas may be silent for a while.
  return fault.startsWith("million") ? "long-idle" : "simulator";
}

function upstreamsOf(kind: ChatKind, first: Simulator, second: Simulator): string {
  const hasty = "timeouts: { connect: 200ms, first_byte: 500ms, idle: 400ms, total: 10s }";
  const secureOrigin = first.origin.replace("http:", "https:");
  const secure = {
    openai: `{ kind: openai, base_url: "${secureOrigin}/v1", ${hasty} }`,
    bedrock: bedrockUpstream(secureOrigin, hasty),
    anthropic: anthropicUpstream(secureOrigin, hasty),
  };
  return `
  simulator: ${simulatorUpstream(first, kind, `${hasty}, max_in_flight: 1`)}
  long-idle: ${simulatorUpstream(first, kind)}
  secure: ${secure[kind]}
  second: ${simulatorUpstream(second, kind)}`;
}

export function requestOf(
  name: CallName,
  fault: string,
  { kind, mark }: { readonly kind: ChatKind; readonly mark: string },
) {
  const model = `${aliases[name]}-${fault}`;
  if (name.startsWith("embeddings")) {
    const marked = `${words} mark:${mark}`;
    const isOne = name === "embeddings" && kind === "bedrock";
    const input = isOne ? marked : [marked, "nine"];
    return { path: "/v1/embeddings", body: { model, input, encoding_format: "float" } };
  }
  const messages = [
    { role: "system", content: `mark:${mark}` },
    { role: "user", content: `echo: ${words}` },
  ];
  const stream = { stream: true, stream_options: { include_usage: true } };
  const body = { model, messages, ...(name === "a stream" ? stream : {}) };
  return { path: "/v1/chat/completions", body };
}
