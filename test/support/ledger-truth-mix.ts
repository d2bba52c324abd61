import type { Random } from "../../simulator/answer/random.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { simulatorUpstream, targetAt, upstreamKinds, type UpstreamKind } from "./gateway.ts";

/** When the caller of a call leaves: not at all, before the answer begins, or in the middle of it. */
export type Leaving = "never" | "before" | "midway";

/** A planned call, identified by its mark. */
export interface PlannedCall {
  readonly mark: string;
  readonly part: string;
  readonly model: string;
  readonly path: "/v1/chat/completions" | "/v1/embeddings";
  readonly body: object;
  readonly isStreamed: boolean;
  readonly leaving: Leaving;
  /** How long a caller that leaves before the answer waits. */
  readonly leavesAfterMs: number;
  /** Whether each attempt is one request at any upstream. */
  readonly isOneRequest: boolean;
}

/** One kind of call, and its share of the mix. */
export interface MixPart {
  readonly name: string;
  readonly share: number;
  /** First part of the alias; the upstream kind is the second. */
  readonly alias: string;
  readonly isStreamed: boolean;
  readonly leaving?: Leaving;
  /** Tokens of the answer, at least and at most; none for embeddings. */
  readonly tokens?: readonly [number, number];
}

const short = [1, 30] as const;
const plain = { isStreamed: false, tokens: short } as const;
const streamed = { isStreamed: true, tokens: short } as const;
const vectors = { isStreamed: false } as const;

/** In thousandths: 100 leave, 50 are cut by the upstream, 50 are not counted, 20 are retried. */
export const wholeMix: readonly MixPart[] = [
  { name: "plain", share: 330, alias: "chat", ...plain },
  { name: "streamed", share: 300, alias: "chat", ...streamed },
  { name: "embeddings", share: 150, alias: "vectors", ...vectors },
  { name: "leaves a silent stream", share: 40, alias: "stall", ...streamed, leaving: "midway" },
  {
    name: "leaves a running stream",
    share: 30,
    alias: "chat",
    isStreamed: true,
    tokens: [50, 400],
    leaving: "midway",
  },
  { name: "leaves before a stream", share: 10, alias: "slow", ...streamed, leaving: "before" },
  { name: "leaves before an answer", share: 10, alias: "slow", ...plain, leaving: "before" },
  {
    name: "leaves before embeddings",
    share: 10,
    alias: "slow-vectors",
    ...vectors,
    leaving: "before",
  },
  { name: "cut stream", share: 15, alias: "reset", ...streamed },
  { name: "cut chunk", share: 15, alias: "cut", ...streamed },
  { name: "cut answer", share: 10, alias: "cut", ...plain },
  { name: "no answer", share: 5, alias: "lost", ...plain },
  { name: "cut embeddings", share: 5, alias: "cut-vectors", ...vectors },
  { name: "uncounted", share: 20, alias: "uncounted", ...plain },
  { name: "uncounted stream", share: 20, alias: "uncounted", ...streamed },
  { name: "uncounted embeddings", share: 10, alias: "uncounted-vectors", ...vectors },
  { name: "retried", share: 8, alias: "retried", ...plain },
  { name: "retried stream", share: 8, alias: "retried", ...streamed },
  { name: "retried embeddings", share: 4, alias: "retried-vectors", ...vectors },
];

/** Streams that continue as long as they are read. */
export const longStreams: readonly MixPart[] = [
  { name: "long stream", share: 1, alias: "chat", isStreamed: true, tokens: [2_000, 3_000] },
];

/** The faults behind the aliases: of their only target, or of the first of two. */
const faultOf: Readonly<Record<string, string>> = {
  chat: "ok",
  stall: "stall-mid",
  slow: "slow-first-byte-60000",
  reset: "reset",
  cut: "cut-mid-chunk",
  lost: "cut-before-headers",
  uncounted: "ok-no-usage",
  retried: "overloaded-503",
};

/** Draws the next call of a mix. */
export function planCall(mix: readonly MixPart[], random: Random, mark: string): PlannedCall {
  const part = pickPart(mix, random);
  const kind = random.pick(upstreamKinds);
  const model = `${part.alias}-${kind}`;
  const { name, isStreamed, leaving = "never", tokens } = part;
  const common = {
    mark,
    part: name,
    model,
    isStreamed,
    leaving,
    leavesAfterMs: random.integer(5, 60),
  };
  if (tokens === undefined) {
    const texts = random.integer(1, 3);
    const input = Array.from({ length: texts }, (_, index) => `${index} mark:${mark} some words`);
    const body = { model, input, dimensions: 256 };
    return { ...common, path: "/v1/embeddings", body, isOneRequest: texts === 1 };
  }
  const messages = [
    { role: "system", content: `mark:${mark}` },
    { role: "user", content: `count: ${random.integer(...tokens)}` },
  ];
  const stream = { stream: true, stream_options: { include_usage: random.chance(0.5) } };
  const body = { model, messages, ...(isStreamed && stream) };
  return { ...common, path: "/v1/chat/completions", body, isOneRequest: true };
}

function pickPart(mix: readonly MixPart[], random: Random): MixPart {
  const whole = mix.reduce((sum, { share }) => sum + share, 0);
  let place = random.next() * whole;
  for (const part of mix) {
    place -= part.share;
    if (place < 0) return part;
  }
  throw new Error("the mix is empty");
}

/** Upstreams and models of the mix, as sections of a configuration. */
export function mixSections(simulator: Simulator) {
  return {
    upstreams: upstreamKinds
      .map((kind) => `\n  to-${kind}: ${simulatorUpstream(simulator, kind)}`)
      .join(""),
    models: upstreamKinds.flatMap((kind) => modelsBehind(kind)).join(""),
  };
}

function modelsBehind(kind: UpstreamKind): readonly string[] {
  return Object.entries(faultOf).flatMap(([alias, fault]) => [
    `
  ${alias}-${kind}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: ${targets(kind, fault, "claude-4")}`,
    `
  ${alias === "chat" ? "vectors" : `${alias}-vectors`}-${kind}:
    kind: embedding
    context_window: 8192
    targets: ${targets(kind, fault, "titan-embed-v2")}`,
  ]);
}

/** A failing upstream has a second target, at the other kind of upstream. */
function targets(kind: UpstreamKind, fault: string, family: string): string {
  // Such that a few tokens cost fractions of a nano-USD.
  const price = "price: { input: 0.123457, cache_read: 0.0123, output: 1.234567 }";
  const at = `upstream: to-${kind}, ${price}`;
  const first = targetAt(kind, { model: `fault-${fault}`, family }, at);
  if (fault !== "overloaded-503") return `[${first}]`;
  const other = kind === "openai" ? "bedrock" : "openai";
  const place = `upstream: to-${other}, priority: 2, ${price}`;
  return `[${first}, ${targetAt(other, { model: "sound", family }, place)}]`;
}
