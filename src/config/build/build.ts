import type { Model, Target } from "../../domain/model.ts";
import type { Plan } from "../../domain/limits/plan.ts";
import type { Secret } from "../../domain/keys/secret.ts";
import type { ImageFetchSettings } from "../../domain/upstream-settings.ts";
import type { Config, ConfiguredEnvironment, StreamSettings } from "../config.ts";
import { defaultPlans, planSchema } from "../schema/model-schema.ts";
import type { ConfigFile } from "../schema/schema.ts";
import { buildAdmin, buildAudit, buildRetention } from "./build-admin.ts";
import { buildHttp } from "./build-http.ts";
import { buildIdempotency } from "./build-idempotency.ts";
import { buildOverload, buildPools, buildRouting } from "./build-routing.ts";
import { buildUpstream } from "./build-upstream.ts";
import { expandRegions, type PlacedModel, type PlacedModels } from "../bedrock/expand-regions.ts";

/** Turns a file that passed every check into what the rest of Sluice uses. */
export function buildConfig(file: ConfigFile): Config {
  const placed = expandRegions(file);
  return {
    listen: file.listen,
    storage: file.storage.url,
    dataDir: file.data_dir,
    limits: {
      store: file.limits.store,
      defaultOutputTokens: file.limits.default_output_tokens,
    },
    http: buildHttp(file.http),
    streams: buildStreams(file.streams),
    answers: {
      chatLimitBytes: file.answers.chat_limit,
      chatValues: file.answers.chat_values,
      embeddingLimitBytes: file.answers.embedding_limit,
    },
    shutdown: {
      preStopMs: file.shutdown.pre_stop,
      drainTimeoutMs: file.shutdown.drain_timeout,
    },
    auth: { peppers: buildPeppers(file.auth), snapshotMaxAgeMs: file.auth.snapshot_max_age },
    admin: buildAdmin(file.admin),
    audit: buildAudit(file.audit),
    ledger: {
      batchRows: file.ledger.batch_rows,
      flushIntervalMs: file.ledger.flush_interval,
      queueRows: file.ledger.queue_rows,
      sync: file.ledger.sync,
      spoolLimitBytes: file.ledger.spool_limit,
      segmentBytes: file.ledger.segment_size,
    },
    retention: buildRetention(file.retention),
    telemetry: {
      logLevel: file.telemetry.log_level,
      logFormat: file.telemetry.log_format,
      logBufferBytes: file.telemetry.log_buffer,
      logsUpstreamMessages: file.telemetry.upstream_messages,
    },
    upstreamRequests: file.upstream_requests,
    workers: file.workers,
    supervisor: { hasStandby: file.supervisor.standby },
    imageFetch: buildImageFetch(file.image_fetch),
    routing: buildRouting(file.routing),
    overload: buildOverload(file.overload),
    idempotency: buildIdempotency(file.idempotency),
    hooks: { callTagHeader: file.hooks.call_tag?.header },
    environments: file.environments.map((environment) =>
      buildEnvironment(environment, placed.models),
    ),
    upstreams: new Map(
      Object.entries(placed.upstreams).map(([name, upstream]) => [
        name,
        buildUpstream(name, upstream, placed.models),
      ]),
    ),
    pools: buildPools(file.pools),
    plans: buildPlans(file.plans),
  };
}

function buildPeppers({ pepper, peppers }: ConfigFile["auth"]): readonly Secret[] {
  if (peppers !== undefined) return peppers;
  return pepper === undefined ? [] : [pepper];
}

function buildStreams(streams: ConfigFile["streams"]): StreamSettings {
  return {
    keepAliveIntervalMs: streams.keep_alive_interval,
    keepAlive: streams.keep_alive,
    holdHeadersMs: streams.hold_headers,
    writeTimeoutMs: streams.write_timeout,
    malformedEvent: streams.malformed_event,
    usageTimeoutMs: streams.usage_timeout,
  };
}

function buildImageFetch(images: ConfigFile["image_fetch"]): ImageFetchSettings {
  return {
    enabled: images.enabled,
    maxBytes: images.max_bytes,
    timeoutMs: images.timeout,
    maxImages: images.max_images,
    allowedHosts: images.allowed_hosts,
    allowsPrivateAddresses: images.allow_private,
  };
}

type ModelFile = PlacedModel;

function buildModel(alias: string, model: ModelFile, environment: string): Model {
  return {
    alias,
    kind: model.kind,
    created: model.created,
    contextWindow: model.context_window,
    targets: model.targets.map((target) => buildTarget(target, environment)),
    timeouts: {
      firstByteMs: model.timeouts.first_byte,
      idleMs: model.timeouts.idle,
      totalMs: model.timeouts.total,
    },
    ...buildKindOfModel(model),
  };
}

const defaultMaxOutputTokens = 4096;

function buildKindOfModel(
  model: ModelFile,
): Pick<Model, "maxOutputTokens" | "fanOut" | "hedgeAfterMs" | "fallbacks"> {
  switch (model.kind) {
    case "chat":
      return {
        maxOutputTokens:
          model.max_output_tokens ?? Math.min(model.context_window, defaultMaxOutputTokens),
        fanOut: 1,
        hedgeAfterMs: model.hedge_after,
        fallbacks: model.fallbacks,
      };
    case "embedding":
      return { maxOutputTokens: undefined, fanOut: model.fan_out };
  }
}

/**
 * What upstream kinds say of their models goes to the upstream, not along with every target; but an
 * environment may call a model by an identifier of its own.
 */
function buildTarget(target: ModelFile["targets"][number], environment: string): Target {
  const { upstream, priority, weight, pool } = target;
  const model = target.bedrock?.profiles[environment]?.[0] ?? target.model;
  return { id: `${upstream}/${model}`, upstream, model, priority, weight, pool };
}

function buildEnvironment(
  { name, hosts, models: offered }: ConfigFile["environments"][number],
  models: PlacedModels,
): ConfiguredEnvironment {
  const aliases = offered.includes("*") ? Object.keys(models) : offered;
  const built = new Map<string, Model>();
  for (const alias of aliases) {
    const model = models[alias];
    if (model !== undefined) built.set(alias, buildModel(alias, model, name));
  }
  return { name, hosts, models: built };
}

function buildPlans(plans: ConfigFile["plans"]): ReadonlyMap<string, Plan> {
  const built = new Map<string, Plan>();
  const defaults = Object.entries(defaultPlans).map(
    ([name, plan]) => [name, planSchema.parse(plan)] as const,
  );
  for (const [name, plan] of [...defaults, ...Object.entries(plans)]) {
    built.set(name, {
      name,
      limits: buildLimits(plan),
      provisioned: plan.provisioned,
      queueTimeoutMs: plan.queue_timeout,
      isIdempotent: plan.idempotency,
      uncapped: plan.uncapped,
      overrunFactor: plan.overrun_factor,
    });
  }
  return built;
}

function buildLimits(plan: ConfigFile["plans"][string]): Plan["limits"] {
  const { requests_per_minute: requestsPerMinute, tokens_per_minute: tokensPerMinute } = plan;
  if (requestsPerMinute === undefined || tokensPerMinute === undefined) return undefined;
  return { requestsPerMinute, tokensPerMinute };
}
