import type { Config, UpstreamSettings } from "../../../src/config/config.ts";
import { formatProblems, parseConfig } from "../../../src/config/load.ts";
import type { OpenAiSettings } from "../../../src/upstreams/openai/config.ts";
import { plainKey } from "../../support/plain-key.ts";
import { startOfTime, type KeyPlan, type Scenario, type UpstreamPlan } from "../scenario.ts";

/** Sections of a configuration file; everything else has its default. */
export interface Configured {
  readonly sections: Readonly<Record<string, string>>;
  /** Each mention of an account adds a key: `k0` and so on. */
  readonly accounts: readonly string[];
}

/** More than the calls of any scenario. */
const limits = { requestsPerMinute: 1e9, tokensPerMinute: 1e12 };

/** One gateway with this configuration and working upstreams, without calls. */
export function configuredScenario({ sections, accounts }: Configured): Scenario {
  const config = readConfig(sections);
  return {
    seed: 1,
    gateways: [{ name: "g0", monotonicMs: 1_000_000, wallMs: startOfTime }],
    limiter: { kind: "local", delayMs: 0, slowShare: 0 },
    upstreams: [...config.upstreams.values()].map(upstreamPlan),
    pools: [],
    models: config.environments.flatMap(({ models }) => [...models.values()]),
    routing: config.routing,
    maxCalls: config.overload.maxCalls,
    keys: accounts.map(keyPlan),
    calls: [],
    events: [],
  };
}

function readConfig(sections: Configured["sections"]): Config {
  const all = { environments: `[{ name: test, hosts: ["*"], models: ["*"] }]`, ...sections };
  const text = Object.entries(all).map(([name, section]) => `${name}: ${section}\n`);
  const result = parseConfig(text.join(""), { name: "the simulation", env: {} });
  if (result.ok) return result.config;
  throw new Error(formatProblems("the simulation", result.problems));
}

function upstreamPlan(upstream: UpstreamSettings): UpstreamPlan {
  const { name, timeouts, maxInFlight, drain } = upstream;
  return {
    name,
    kind: upstream.kind.name === "openai" ? "openai" : "bedrock",
    timeouts,
    maxInFlight,
    drain,
    embeddingBatchLimit: batchLimitOf(upstream),
    thinkMs: 20,
    pieceMs: 3,
    faultShare: 0,
    tokensPerByte: 0.25,
  };
}

function batchLimitOf({ kind, settings }: UpstreamSettings): number {
  return kind.name === "openai" ? (settings as OpenAiSettings).embeddingBatchLimit : 1;
}

function keyPlan(accountId: string, index: number): KeyPlan {
  return {
    key: plainKey({ id: `k${index}`, accountId, applicationId: `application-${index}` }),
    publicIds: [`public-${index}`],
    limits,
    queueTimeoutMs: 0,
    uncapped: { uncapped: "debt", overrunFactor: 3 },
  };
}
