import type { Caller } from "../../src/domain/key.ts";
import type { Model, Target } from "../../src/domain/model.ts";
import type { Limits } from "../../src/domain/plan.ts";
import type { Call } from "../../src/pipeline/call.ts";
import { InFlight } from "../../src/pipeline/in-flight.ts";
import type { ImageFetchSettings, Snapshot, Upstream } from "../../src/pipeline/snapshot.ts";

const generous: Limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000 };

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

export function upstreamOf(name: string): Upstream {
  return {
    name,
    adapter: {
      authorize: (request) => Promise.resolve(request),
      readFailure: () => ({ kind: "unavailable", message: "" }),
    },
    timeouts: { connectMs: 1_000, firstByteMs: 2_000, idleMs: 3_000, totalMs: 4_000 },
    inFlight: new InFlight(10),
  };
}

export function snapshotOf(upstreams: readonly string[]): Snapshot {
  return {
    environmentsByHost: new Map(),
    defaultEnvironment: undefined,
    plans: new Map(),
    upstreams: new Map(upstreams.map((name) => [name, upstreamOf(name)])),
    settings: { jsonDepth: 64, answerLimitBytes: 1_000_000, imageFetch: noImageFetch },
  };
}

const noImageFetch: ImageFetchSettings = {
  enabled: false,
  maxBytes: 100_000,
  timeoutMs: 2_000,
  maxImages: 4,
  allowedHosts: [],
  allowsPrivateAddresses: false,
};

export function callerOf(limits: Limits = generous): Caller {
  return {
    key: {
      id: "key_a",
      application: "search",
      environment: "test",
      plan: "standard",
      limits: undefined,
      createdAt: 0,
      revokedAt: undefined,
    },
    publicId: "aaaaaaaa",
    limits,
  };
}

export function callOf(values: Partial<Call> = {}): Call {
  return {
    id: "req_1",
    caller: callerOf(),
    environment: { name: "test", models: new Map() },
    snapshot: snapshotOf(["up"]),
    signal: new AbortController().signal,
    receivedAt: 0,
    ...values,
  };
}
