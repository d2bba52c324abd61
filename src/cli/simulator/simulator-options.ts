import { systemClock } from "../../domain/clock.ts";
import {
  type BedrockOptions,
  type FaultStep,
  parseFault,
  type SimulatedCredential,
  type SimulatorOptions,
} from "../../../simulator/simulator.ts";
import { readArguments, UsageError } from "../command.ts";

/** Reads the command line of `sluice simulator`; throws `UsageError`. */
export function readSimulatorOptions(args: readonly string[]): SimulatorOptions {
  const { values, positionals } = readArguments(args, {
    listen: { type: "string", default: "127.0.0.1:9090" },
    "tokens-per-second": { type: "string", default: "0" },
    "first-token-delay": { type: "string", default: "0" },
    fault: { type: "string", multiple: true, default: [] },
    "api-key": { type: "string", multiple: true, default: [] },
    "bedrock-credential": { type: "string", multiple: true, default: [] },
    "bedrock-api-key": { type: "string", multiple: true, default: [] },
    "models-as-of": { type: "string" },
  });
  if (positionals.length > 0) throw new UsageError(`simulator does not take '${positionals[0]}'`);
  const listen = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(values.listen);
  const hostname = listen?.[1] ?? listen?.[2];
  const port = Number(listen?.[3]);
  if (hostname === undefined || port > 65_535) throw new UsageError("--listen takes HOST:PORT");
  const tokensPerSecond = Number(values["tokens-per-second"]);
  if (!(tokensPerSecond >= 0)) throw new UsageError("--tokens-per-second takes a number");
  const firstTokenDelayMs = Number(values["first-token-delay"]);
  if (!(firstTokenDelayMs >= 0)) throw new UsageError("--first-token-delay takes milliseconds");
  const faultPlan = values.fault.map(readFaultStep);
  const bedrock = readCredentials(values["bedrock-credential"], values["bedrock-api-key"]);
  const modelsAsOf = readDate(values["models-as-of"]);
  const keys = values["api-key"];
  const pace = { tokensPerSecond, firstTokenDelayMs };
  const base = { hostname, port, ...pace, faultPlan, bedrock: { ...bedrock, modelsAsOf } };
  return keys.length === 0 ? base : { ...base, apiKeys: keys };
}

/** Milliseconds since the epoch. */
function readDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (text === "now") return systemClock.now();
  const date = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(date)) throw new UsageError("--models-as-of takes YYYY-MM-DD, or now");
  return date;
}

/** The credentials of Bedrock's wire; by default the published ones of the demo. */
function readCredentials(pairs: readonly string[], apiKeys: readonly string[]): BedrockOptions {
  if (pairs.length === 0 && apiKeys.length === 0) return {};
  const credentials: SimulatedCredential[] = [];
  for (const pair of pairs) {
    const [, accessKeyId, secretAccessKey] = /^([^:]+):(.+)$/.exec(pair) ?? [];
    if (accessKeyId === undefined || secretAccessKey === undefined) {
      throw new UsageError("--bedrock-credential takes ID:SECRET");
    }
    credentials.push({ accessKeyId, secretAccessKey });
  }
  return { credentials, apiKeys };
}

/**
 * `stall-mid:500*3`: the next three calls stall for half a second; `error-500*ever@10`: every tenth
 * call fails.
 */
function readFaultStep(text: string): FaultStep {
  const parts = /^([^*@]+)(?:\*(\d+|ever))?(?:@(\d+(?:\.\d+)?))?$/.exec(text);
  const fault = parseFault(parts?.[1] ?? "");
  const times = parts?.[2] === "ever" ? Number.POSITIVE_INFINITY : Number(parts?.[2] ?? 1);
  const share = Number(parts?.[3] ?? 100) / 100;
  if (fault === undefined || !(share > 0 && share <= 1)) {
    throw new UsageError(`no such fault: ${text}; see --help`);
  }
  const step = { mode: fault.mode, times, share };
  return fault.argument === undefined ? step : { ...step, argument: fault.argument };
}
