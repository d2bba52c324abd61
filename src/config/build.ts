import type { UpstreamKind } from "../upstreams/kind.ts";
import type { Config } from "./config.ts";
import type { ConfigFile } from "./schema.ts";
import { buildAdmin, buildAudit, buildRetention } from "./sections/admin.ts";
import { buildEnvironment } from "./sections/environments.ts";
import { buildHttp } from "./sections/http.ts";
import { buildIdempotency } from "./sections/idempotency.ts";
import { buildImageFetch } from "./sections/image-fetch.ts";
import { targetsAt } from "./sections/models.ts";
import { buildPlans } from "./sections/plans.ts";
import { buildOverload, buildPools, buildRouting } from "./sections/routing.ts";
import { buildPeppers, buildStreams } from "./sections/server.ts";
import { buildUpstreams } from "./sections/upstreams.ts";

/** Turns a file that passed every check into what the rest of Sluice uses. */
export function buildConfig(file: ConfigFile, kinds: readonly UpstreamKind[]): Config {
  const sources = { ...file, kinds };
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
    environments: file.environments.map((environment) => buildEnvironment(environment, sources)),
    upstreams: buildUpstreams(file.upstreams, kinds, (upstream, kind) =>
      targetsAt(file.models, upstream, kind),
    ),
    pools: buildPools(file.pools),
    plans: buildPlans(file.plans),
  };
}
