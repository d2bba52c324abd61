import { askTarget, probeTarget } from "../../call/attempts/ask-target.ts";
import type { Config } from "../../config/config.ts";
import type { Clock } from "../../domain/clock.ts";
import {
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import type { RandomBytes } from "../../domain/keys/base62.ts";
import type { Model, Target } from "../../domain/model.ts";
import type { Proxies } from "../../domain/upstream-settings.ts";
import type { Snapshot } from "../../snapshot/snapshot.ts";
import { createUpstreamClient } from "../../upstream-client/http/http-client.ts";
import type { Transport } from "../../upstream-client/transport.ts";
import type { ServerProbe } from "../../upstreams/adapter.ts";
import { buildSnapshot } from "../wiring/build-snapshot.ts";

export interface AskOptions {
  readonly proxies: Proxies;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** The timeout of each target, until its first event. */
  readonly timeoutMs: number;
  /** Also asks what its server needs. */
  readonly probes: boolean;
}

export interface AskedTargetReport {
  readonly alias: string;
  readonly target: Target;
  /** Undefined: it answered. */
  readonly failure: UpstreamFailureDetails | undefined;
  /** Probes that show the need of a setting. */
  readonly needs: readonly Pick<ServerProbe, "set" | "about">[];
  /** How far its clock is ahead of ours, in milliseconds; undefined when it sent no time. */
  readonly aheadMs: number | undefined;
}

const askedAtOnce = 8;

/** Asks every target for a few tokens as a gateway would, once for each API that aliases call it by. */
export async function askTargets(
  config: Config,
  options: AskOptions,
): Promise<readonly AskedTargetReport[]> {
  const { clock, random: randomBytes } = options;
  const onTrouble = (): void => undefined;
  const snapshot = buildSnapshot(config, { clock, randomBytes, onTrouble, hooks: [] });
  const waiting = targetsOf(config, snapshot);
  const reports: AskedTargetReport[] = [];
  while (waiting.length > 0) {
    const asked = waiting.splice(0, askedAtOnce).map((one) => ask(one, snapshot, options));
    reports.push(...(await Promise.all(asked)));
  }
  return reports;
}

interface ModelTarget {
  readonly model: Model;
  readonly target: Target;
}

function targetsOf({ environments }: Config, { upstreams }: Snapshot): ModelTarget[] {
  const found = new Map<string, ModelTarget>();
  for (const { models } of environments) {
    for (const model of models.values()) {
      for (const target of model.targets) {
        const { chat } = upstreams.get(target.upstream)?.adapter ?? {};
        const named = { alias: model.alias, model: target.model, upstream: target.upstream };
        const api = model.kind === "chat" ? chat?.origin?.(named).wire : model.kind;
        const key = `${target.id} ${api}`;
        if (!found.has(key)) found.set(key, { model, target });
      }
    }
  }
  return [...found.values()];
}

async function ask(
  { model, target }: ModelTarget,
  snapshot: Snapshot,
  { proxies, clock, timeoutMs, probes }: AskOptions,
): Promise<AskedTargetReport> {
  const upstream = snapshot.upstreams.get(target.upstream);
  if (upstream === undefined) throw new Error(`there is no upstream ${target.upstream}`);
  // An unused connection would keep the process alive.
  const connections = { ...upstream.connections, mostIdle: 0 };
  let aheadMs: number | undefined;
  const client = createUpstreamClient({
    proxies,
    mostConnections: 2,
    monotonic: () => clock.monotonic(),
  });
  const transport: Transport = async (url, request) => {
    const response = await client(url, request);
    const time = Date.parse(response.headers.get("date") ?? "");
    if (!Number.isNaN(time)) aheadMs = time - clock.now();
    return response;
  };
  const answerLimitBytes = snapshot.settings.answerLimitBytes.embedding;
  const asked = {
    model,
    target,
    upstream: { ...upstream, connections },
    timeoutMs,
    answerLimitBytes,
  };
  try {
    const services = { transport, clock, places: anyPlace };
    await askTarget(asked, services);
    const needs = probes ? await probeTarget(asked, services) : [];
    return { alias: model.alias, target, failure: undefined, needs, aheadMs };
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    return { alias: model.alias, target, failure: error.details, needs: [], aheadMs };
  }
}

const anyPlace = {
  tryOpen: () => true,
  whenOpen: () => Promise.resolve(true),
  close: () => undefined,
};
