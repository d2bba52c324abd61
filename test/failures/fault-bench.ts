import { expect } from "bun:test";
import { systemClock } from "../../src/domain/clock.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import {
  createMemoryLimitStore,
  type MemoryLimitStore,
} from "../../src/store/coordinator/memory/limit-store.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  type TestGateway,
  type UpstreamKind,
} from "../support/gateway.ts";
import { faultTables } from "./fault-table.ts";
import { minuteScopes } from "../../src/domain/limits/limit-scope.ts";

/** What an echoing model answers, and what embeddings are made of. */
export const words = "one two three four five six seven eight";

export const callNames = ["a whole answer", "a stream", "embeddings"] as const;
export type CallName = (typeof callNames)[number] | "embeddings in one batch";

/** Cohere's models on Bedrock take many texts a request, Titan's take one. */
export const callNamesOf: Readonly<Record<UpstreamKind, readonly CallName[]>> = {
  openai: callNames,
  bedrock: [...callNames, "embeddings in one batch"],
};

export interface CallSeen {
  readonly response: Response;
  readonly text: string;
  readonly row: UsageRecord;
}

const limits = { requestsPerMinute: 1_000, tokensPerMinute: 10_000_000 };

/** A gateway with an alias for every fault that its upstream can show. */
export class FaultBench implements AsyncDisposable {
  readonly gateway: TestGateway;
  readonly #kind: UpstreamKind;
  readonly #limits: MemoryLimitStore;

  private constructor(gateway: TestGateway, kind: UpstreamKind, store: MemoryLimitStore) {
    this.gateway = gateway;
    this.#kind = kind;
    this.#limits = store;
  }

  static async start(kind: UpstreamKind): Promise<FaultBench> {
    const store = createMemoryLimitStore({
      clock: systemClock,
      random: Math.random,
      reservationTtlMs: 60_000,
      scopeLimit: 1_000,
    });
    const gateway = await startGateway({ kind, overrides: { limits: store } });
    const timeouts = "timeouts: { connect: 200ms, first_byte: 500ms, idle: 400ms, total: 10s }";
    gateway.reconfigure({
      routing: "{ attempts: 1 }",
      models: modelsOf(kind),
      upstreams: `
  simulator: ${simulatorUpstream(gateway.simulator, kind, timeouts)}`,
    });
    return new FaultBench(gateway, kind, store);
  }

  /** Calls with a key of its own; what is left of the key's limits must agree with the ledger. */
  async call(name: CallName, fault: string): Promise<CallSeen> {
    const { gateway } = this;
    const { id: keyId, text: key } = await gateway.createKey({ limits });
    const { path, body } = requestOf(name, fault, this.#kind);
    const headers = { authorization: `Bearer ${key}` };
    const response = await gateway.post(path, body, { headers });
    const text = await response.clone().text();
    await this.untilUpstreamIsFree();
    const rows = (await gateway.usage()).filter((row) => row.keyId === keyId);
    expect(rows.map(({ id }) => id)).toEqual([response.headers.get("x-request-id") ?? ""]);
    const [row] = rows;
    if (row === undefined) throw new Error("no row");
    const left = this.#limits.peek(minuteScopes(`key:${keyId}`, limits));
    expect(left.remainingTokens).toBe(limits.tokensPerMinute - row.inputTokens - row.outputTokens);
    expect(left.remainingRequests).toBe(limits.requestsPerMinute - 1);
    expect(this.#limits.reservationCount).toBe(0);
    return { response, text, row };
  }

  async untilUpstreamIsFree(): Promise<void> {
    const deadline = Date.now() + 10_000;
    while (this.gateway.simulator.openCalls > 0) {
      if (Date.now() > deadline) throw new Error("an upstream call goes on");
      await Bun.sleep(2);
    }
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.gateway[Symbol.asyncDispose]();
  }
}

/** Faults beyond the table's, which tests of their own are about. */
export const furtherFaults = ["flap", "throttle-429-7000", "throttled-burst"];

function modelsOf(kind: UpstreamKind): string {
  const faults = [...faultTables[kind].map(([fault]) => fault), ...furtherFaults];
  const targets = (fault: string, family: string): string =>
    `[${targetAt(kind, { model: `fault-${fault}`, family })}]`;
  return faults
    .map(
      (fault) => `
  chat-${fault}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: ${targets(fault, "claude-4")}
  embed-${fault}:
    kind: embedding
    context_window: 8192
    targets: ${targets(fault, "titan-embed-v2")}
  batch-${fault}:
    kind: embedding
    context_window: 8192
    targets: ${targets(fault, "cohere-embed-v3")}`,
    )
    .join("");
}

export function requestOf(name: CallName, fault: string, kind: UpstreamKind) {
  const messages = [{ role: "user", content: `echo: ${words}` }];
  const encoding_format = "float";
  switch (name) {
    case "a whole answer":
      return { path: "/v1/chat/completions", body: { model: `chat-${fault}`, messages } };
    case "a stream": {
      const stream = { stream: true, stream_options: { include_usage: true } };
      const body = { model: `chat-${fault}`, messages, ...stream };
      return { path: "/v1/chat/completions", body };
    }
    case "embeddings": {
      const input = kind === "openai" ? [words, "nine"] : words;
      return { path: "/v1/embeddings", body: { model: `embed-${fault}`, input, encoding_format } };
    }
    case "embeddings in one batch": {
      const body = { model: `batch-${fault}`, input: [words, "nine"], encoding_format };
      return { path: "/v1/embeddings", body };
    }
  }
}
