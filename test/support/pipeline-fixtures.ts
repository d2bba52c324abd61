import { GatewayError, overloaded } from "../../src/domain/errors/gateway-error.ts";
import { openAiDialect } from "../../src/dialects/openai-dialect.ts";
import { buildRouting, type RoutingServices } from "../../src/process/wiring/build-services.ts";
import { type Clock, systemClock } from "../../src/domain/clock.ts";
import type { Caller } from "../../src/domain/keys/key.ts";
import type { Model, Target } from "../../src/domain/model.ts";
import { Calendar } from "../../src/domain/money/calendar.ts";
import { PublishedPrices } from "../../src/domain/money/price.ts";
import type { Limits, Plan } from "../../src/domain/limits/plan.ts";
import type { RoutingSettings } from "../../src/domain/settings.ts";
import type { UpstreamFailure } from "../../src/domain/errors/upstream-failure.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { type Call, plainCall } from "../../src/snapshot/call.ts";
import { TokenEstimator } from "../../src/admission/estimate/estimate.ts";
import { CountingTargets } from "../../src/call/counting-targets.ts";
import { imageMemoryBytes } from "../../src/call/images/call-images.ts";
import { type EndSignal, endingWith, EndSource } from "../../src/domain/waiting/end-signal.ts";
import { MemoryGate } from "../../src/domain/waiting/memory-gate.ts";
import { createUpstreamClient } from "../../src/upstream-client/http/http-client.ts";
import {
  type ConnectionSettings,
  type ImageFetchSettings,
  noProxies,
} from "../../src/domain/upstream-settings.ts";
import type { Transport } from "../../src/upstream-client/transport.ts";
import { RunningCalls } from "../../src/call/running-calls.ts";
import type { CallServices } from "../../src/call/services.ts";
import type { Snapshot, Upstream } from "../../src/snapshot/snapshot.ts";
import { plainKey } from "./plain-key.ts";
import { KeptLedger } from "./ledger-fixtures.ts";
import type { UpstreamPlaces } from "../../src/admission/capacity/upstream-places.ts";
import type { LimitStore } from "../../src/store/limits/limit-store.ts";
import { MemoryLimitStore } from "../../src/store/limits/memory/limit-store.ts";
import type { ChatCodec, EmbeddingCodec, UpstreamAdapter } from "../../src/upstreams/adapter.ts";
import { createOpenAiAdapter } from "../../src/upstreams/openai/adapter.ts";
import type { OpenAiSettings } from "../../src/upstreams/openai/config.ts";
import { Pseudonyms } from "../../src/domain/keys/pseudonyms.ts";
import { Sessions } from "../../src/routing/affinity.ts";
import { ValueTags } from "../../src/call/opaque/value-tags.ts";
import { testPeppers } from "./test-peppers.ts";

const generous: Limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000 };

export const plainPlan: Plan = {
  name: "standard",
  limits: generous,
  provisioned: false,
  queueTimeoutMs: 0,
  isIdempotent: false,
  responsesKeepMs: 0,
  uncapped: "debt",
  overrunFactor: 3,
  whenLimitsUnavailable: "local",
};

export function targetOf(upstream: string, values: Partial<Target> = {}): Target {
  return { id: `${upstream}/m`, upstream, model: "m", priority: 1, weight: 1, ...values };
}

export function modelOf(values: Partial<Model> = {}): Model {
  return {
    alias: "alpha-sonnet-4",
    kind: "chat",
    created: 1,
    contextWindow: 1_000,
    maxOutputTokens: 100,
    fanOut: 1,
    targets: [targetOf("up")],
    ...values,
  };
}

export const plainConnections: ConnectionSettings = {
  id: "plain",
  idleMs: 4_000,
  ageMs: 300_000,
  mostIdle: 100,
  tls: undefined,
};

export function upstreamOf(name: string, values: Partial<Upstream> = {}): Upstream {
  return {
    name,
    adapter: {
      requestIdHeader: "x-request-id",
      authorize: (request) => Promise.resolve(request),
      readFailure: () => ({ kind: "unavailable", message: "" }),
    },
    timeouts: { connectMs: 1_000, firstByteMs: 2_000, idleMs: 3_000, totalMs: 4_000 },
    connections: plainConnections,
    maxInFlight: 10,
    drain: undefined,
    forwardEndUsers: "pseudonym",
    stateAccount: undefined,
    ...values,
  };
}

export function snapshotOf(
  upstreams: readonly (string | Upstream)[],
  imageFetch: Partial<ImageFetchSettings> = {},
): Snapshot {
  const built = upstreams.map((upstream) =>
    typeof upstream === "string" ? upstreamOf(upstream) : upstream,
  );
  return {
    environmentsByHost: new Map(),
    defaultEnvironment: undefined,
    plans: new Map(),
    pools: new Map(),
    routing: plainRouting,
    upstreams: new Map(built.map((upstream) => [upstream.name, upstream])),
    hooks: [],
    settings: {
      answerLimitBytes: { chat: 1_000_000, embedding: 1_000_000 },
      chatAnswerValues: 1_000_000,
      malformedEvents: 10,
      usageTimeoutMs: 5_000,
      endUsers: "pseudonym",
      tags: [],
      imageFetch: { ...noImageFetch, ...imageFetch },
    },
  };
}

export const plainRouting: RoutingSettings = {
  attempts: 4,
  retryBudgetPercent: 20,
  retryFloor: 1_000,
  firstBackoffMs: 10,
  longestBackoffMs: 100,
  showsTarget: true,
  showsCost: false,
  hasSessionAffinity: true,
  queueLimit: 100,
  out: {
    failures: 5,
    errorPercent: 50,
    leastAttempts: 20,
    firstMs: 1_000,
    longestMs: 10_000,
  },
};

export const noImageFetch: ImageFetchSettings = {
  enabled: false,
  maxBytes: 100_000,
  timeoutMs: 2_000,
  maxImages: 4,
  allowedHosts: [],
  allowsPrivateAddresses: false,
};

export function callerOf(limits: Limits = generous): Caller {
  return {
    key: plainKey(),
    publicId: "aaaaaaaa",
    limits,
  };
}

/** What of a request decides its price, for calls under no budget. */
export const plainWork = {
  arrivedAt: 1_000_000,
  size: { textBytes: 0, attachmentTokens: 0 },
  work: { inputs: 1 },
};

export interface CallValues extends Omit<Partial<Call>, "signal"> {
  readonly signal?: EndSignal;
}

/** `signal`: of the caller, which may be one of the runtime. */
export function callOf({ signal, ...values }: CallValues = {}): Call {
  return {
    id: "req_1",
    caller: callerOf(),
    environment: { name: "test", models: new Map() },
    snapshot: snapshotOf(["up"]),
    signal: signal === undefined ? new EndSource() : endingWith(signal),
    receivedAt: systemClock.monotonic(),
    headers: new Headers(),
    options: plainCall,
    dialect: openAiDialect,
    ...values,
  };
}

/** An adapter for a server that speaks OpenAI's wire, with the limits of another kind. */
export function adapterOf(
  url: string,
  differences: { chat?: Partial<ChatCodec>; embeddings?: Partial<EmbeddingCodec> } = {},
  more: Partial<OpenAiSettings> = {},
): UpstreamAdapter {
  const settings: OpenAiSettings = {
    baseUrl: url,
    apiKey: undefined,
    apiKeyHeader: "authorization",
    headers: {},
    query: {},
    forwardFields: [],
    dropFields: [],
    entra: undefined,
    quirks: new Set(),
    maxTokensField: "as_sent",
    instructionRole: "as_sent",
    flattenTextParts: false,
    streamUsage: true,
    sessionCacheKey: false,
    takesTokenIds: false,
    embeddingBatchLimit: 1,
    embeddingEncoding: "as_sent",
    ...more,
  };
  const adapter = createOpenAiAdapter(settings, {
    clock: systemClock,
    newToolCallId: () => crypto.randomUUID(),
    onTrouble: () => undefined,
  });
  const { chat, embeddings } = adapter;
  return {
    ...adapter,
    ...(chat !== undefined && { chat: { ...chat, ...differences.chat } }),
    ...(embeddings !== undefined && {
      embeddings: { ...embeddings, ...differences.embeddings },
    }),
  };
}

/** The services of a real pipeline, with a record of its reports. */
export interface TestPipeline {
  readonly services: CallServices;
  readonly records: readonly UsageRecord[];
  readonly failures: readonly UpstreamFailure[];
  readonly running: RunningCalls;
  readonly placesAt: (upstream: Upstream) => UpstreamPlaces;
}

export function pipelineOf(values: Partial<CallServices> = {}): TestPipeline {
  const ledger = new KeptLedger();
  const failures: UpstreamFailure[] = [];
  const clock = systemClock;
  const random = (): number => 0;
  const limits = new MemoryLimitStore({
    clock,
    random,
  });
  const running = new RunningCalls(() => true, undefined, values.clock);
  const routing = routingOf(clock, limits);
  const services: CallServices = {
    clock,
    random,
    tags: new ValueTags(testPeppers()),
    names: new Pseudonyms(testPeppers()),
    sessions: new Sessions(testPeppers()),
    limits,
    estimator: new TokenEstimator({ defaultOutputTokens: 50, nowMs: clock.monotonic() }),
    calendar: new Calendar(),
    ledger,
    prices: new PublishedPrices(),
    onCallEnded: () => undefined,
    onSettleFailed: () => undefined,
    transport: newTransport(),
    resolveHost: () => Promise.resolve([]),
    imageMemory: new MemoryGate(clock),
    imageMemoryBytes,
    running,
    ...routing,
    onRetryDecided: () => undefined,
    overload: { refusesAdmitted: () => false, refusal: () => overloaded(0) },
    onAttemptFailed: (_call, _candidate, failure) => void failures.push(failure),
    counting: new CountingTargets(clock),
    onCountFailed: () => undefined,
    onMalformedEvents: () => undefined,
    onHookFailed: () => undefined,
    onLabelDropped: () => undefined,
    endUsers: { of: () => undefined },
    ...values,
  };
  const placesAt = (upstream: Upstream): UpstreamPlaces => routing.capacity.at(upstream).places;
  return { services, records: ledger.closed, failures, running, placesAt };
}

/** A client without a proxy, with connections of its own. */
function newTransport(): Transport {
  return createUpstreamClient({ proxies: noProxies, mostConnections: 1_000, ...systemClock });
}

/** Targets without a history, and room for every call. */
function routingOf(clock: Clock, limits: LimitStore): RoutingServices {
  const nothing = (): undefined => undefined;
  const events = {
    targetOut: nothing,
    targetReturned: nothing,
    targetTakenOver: nothing,
    targetProbed: nothing,
    waited: nothing,
  };
  return buildRouting({
    clock,
    limits,
    units: { holdings: () => new Map(), unitsOf: () => 0 },
    routing: () => plainRouting,
    routingEvents: events,
    transport: newTransport(),
  });
}

/** The error of a call for its caller; throws when there is none. */
export async function gatewayErrorOf(promise: Promise<unknown>): Promise<GatewayError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof GatewayError) return error;
  throw new Error(`expected a GatewayError, but got ${String(error)}`);
}
