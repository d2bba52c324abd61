/**
 * A simulated model provider: a real HTTP server that speaks the wire formats of OpenAI and Bedrock
 * and makes up its answers. The demo, tests and the benchmark use it; `sluice simulator` runs it
 * alone.
 *
 * Callers connect to a front that relays bytes to a `Bun.serve` on a second loopback port. The
 * front costs a few microseconds per request and allows faults below HTTP (aborted and reset
 * connections) on the same address. `directUrl` bypasses it and answers such faults with 400.
 */
import { type Clock, systemClock } from "./time.ts";
import { type BedrockOptions, createBedrock } from "./bedrock/service.ts";
import { demoCredentials, type SimulatedCredential } from "./bedrock/credentials.ts";
import { createDispatch } from "./dispatch.ts";
import { FaultChooser, type FaultStep } from "./faults/fault-modes.ts";
import { startRawFront } from "./front.ts";
import {
  openAi,
  profiles,
  type ProfileName,
  type Quirk,
  type ServerBehaviour,
} from "./openai/profiles.ts";
import { type TruthEntry, TruthLog } from "./call.ts";

export { demoApiKey, demoCredentials, type SimulatedCredential } from "./bedrock/credentials.ts";
export type { BedrockOptions } from "./bedrock/service.ts";
export type { TruthEntry } from "./call.ts";
export { simulatorHelp } from "./help.ts";
export * as chatServers from "./openai/profiles.ts";
export { type FaultMode, type FaultStep, faultModes, parseFault } from "./faults/fault-modes.ts";

export interface SimulatorOptions {
  /** Default 127.0.0.1. */
  readonly hostname?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 0: as fast as the caller reads. */
  readonly tokensPerSecond?: number;
  /** Default 0. */
  readonly firstTokenDelayMs?: number;
  /** Faults of the next calls that do not name their own. */
  readonly faultPlan?: readonly FaultStep[];
  /** The server of the chat wire that is played. Default: OpenAI's. */
  readonly profile?: ProfileName;
  /** What that server does beside, by the names of `quirks` and `traits`. */
  readonly quirks?: readonly Quirk[];
  /** When set, calls of OpenAI's wire without one of these keys are answered 401. */
  readonly apiKeys?: readonly string[];
  /** Credentials, models and quotas of Bedrock's wire. */
  readonly bedrock?: BedrockOptions;
  /** Tokens of prompt and answer together. Default: no limit. */
  readonly contextWindow?: number;
  /** How many calls the truth log keeps. Default 10000. */
  readonly truthLogLimit?: number;
  /** Called when a call has ended. */
  readonly onTruth?: (entry: TruthEntry) => void;
  readonly clock?: Clock;
}

export interface Simulator extends AsyncDisposable {
  /** Base URL for clients of OpenAI's wire: `http://127.0.0.1:PORT/v1`. */
  readonly url: string;
  /** Endpoint for clients of Bedrock's wire: `http://127.0.0.1:PORT`. */
  readonly origin: string;
  readonly port: number;
  /** A key pair of Bedrock's wire that is valid at the start. */
  readonly credential: Readonly<Record<"accessKeyId" | "secretAccessKey", string>>;
  /** Like `url`, without the front that aborts connections, and so somewhat faster. */
  readonly directUrl: string;
  /** Like `origin`, without the front. */
  readonly directOrigin: string;
  readonly bedrock: BedrockControl;
  readonly truth: TruthLog;
  /** Calls that have begun and not ended. */
  readonly openCalls: number;
  setFaultPlan(steps: readonly FaultStep[]): void;
}

/** Changes the credentials of Bedrock's wire while the simulator runs. */
interface BedrockControl {
  issue(credential: SimulatedCredential): void;
  issueApiKey(apiKey: string): void;
  /** `name` is an access key id or a bearer key. */
  expire(name: string): void;
}

const defaultTruthLogLimit = 10_000;
const requestBodyLimitBytes = 64 * 1024 * 1024;

export function startSimulator(options: SimulatorOptions = {}): Simulator {
  const { hostname = "127.0.0.1", clock = systemClock } = options;
  const truth = new TruthLog(options.truthLogLimit ?? defaultTruthLogLimit);
  const faults = new FaultChooser();
  faults.setPlan(options.faultPlan ?? []);
  const bedrock = createBedrock(options.bedrock ?? {}, clock);
  const dispatch = createDispatch({
    clock,
    truth,
    faults,
    bedrock,
    pace: {
      tokensPerSecond: options.tokensPerSecond ?? 0,
      firstTokenDelayMs: options.firstTokenDelayMs ?? 0,
    },
    apiKeys: options.apiKeys === undefined ? undefined : new Set(options.apiKeys),
    contextWindow: options.contextWindow,
    server: playedServer(options),
    onTruth: options.onTruth,
    takeOver: (peerPort) => front.takeOver(peerPort),
  });
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: requestBodyLimitBytes,
    fetch: (request, own) => dispatch.handle(request, own.requestIP(request)?.port ?? 0),
    error: () => new Response("The simulator failed.", { status: 500 }),
  });
  const serverPort = server.port ?? 0;
  const front = startFront({ hostname, port: options.port ?? 0, serverPort }, server);
  const origin = `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${front.port}`;
  const directOrigin = `http://127.0.0.1:${serverPort}`;
  return {
    url: `${origin}/v1`,
    origin,
    port: front.port,
    credential: options.bedrock?.credentials?.[0] ?? demoCredentials,
    directUrl: `${directOrigin}/v1`,
    directOrigin,
    bedrock: bedrock.credentials,
    truth,
    get openCalls() {
      return dispatch.openCalls;
    },
    setFaultPlan: (steps) => faults.setPlan(steps),
    async [Symbol.asyncDispose]() {
      front[Symbol.dispose]();
      await server.stop(true);
    },
  };
}

function playedServer({ profile, quirks = [] }: SimulatorOptions): ServerBehaviour {
  const server = profile === undefined ? openAi : profiles[profile];
  return { ...server, quirks: [...server.quirks, ...quirks] };
}

/** Stops the server if the front cannot listen. */
function startFront(
  options: Parameters<typeof startRawFront>[0],
  server: { stop(isForced: boolean): Promise<void> },
): ReturnType<typeof startRawFront> {
  try {
    return startRawFront(options);
  } catch (error) {
    server.stop(true).catch(() => undefined);
    const message = `cannot listen at ${options.hostname}:${options.port}; is the port in use?`;
    throw new Error(message, { cause: error });
  }
}
