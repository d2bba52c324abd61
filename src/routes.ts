import { createChatCompletions } from "./dialects/openai-chat/chat-completions.ts";
import type { ApiSettings } from "./dialects/api-settings.ts";
import { createEmbeddings } from "./dialects/embeddings/embeddings.ts";
import { createReadiness, health } from "./edge/health.ts";
import type { AnswerSharing } from "./idempotency/idempotency.ts";
import { listModels, retrieveModel } from "./dialects/models/models.ts";
import { createMetricsPage } from "./control/platform/metrics-page.ts";
import type { Route } from "./edge/dispatch/route.ts";
import type { PipelineServices } from "./call/services.ts";

export interface DataRouteOptions {
  readonly services: PipelineServices;
  /** Read for each call: a reload changes it. */
  readonly settings: () => ApiSettings;
  /** Undefined: `Idempotency-Key` is ignored. */
  readonly idempotency?: AnswerSharing;
  /** Undefined when the process can serve. */
  readonly whyNotReady: () => string | undefined;
}

/** Every path of the data listener. Each also answers without `/v1` and with a slash behind. */
export function dataRoutes({
  services,
  settings,
  idempotency,
  whyNotReady,
}: DataRouteOptions): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/v1/chat/completions",
      access: "key",
      counts: "call",
      handle: createChatCompletions(services, settings, idempotency),
    },
    {
      method: "POST",
      path: "/v1/embeddings",
      access: "key",
      counts: "call",
      handle: createEmbeddings(services, settings, idempotency),
    },
    { method: "GET", path: "/v1/models", access: "key", counts: "listing", handle: listModels },
    {
      method: "GET",
      path: "/v1/models/*",
      access: "key",
      counts: "listing",
      handle: retrieveModel,
    },
    { method: "GET", path: "/healthz", access: "public", handle: health },
    { method: "GET", path: "/readyz", access: "public", handle: createReadiness(whyNotReady) },
  ];
}

export interface AdminRouteOptions {
  readonly renderMetrics: () => string;
  readonly whyNotReady: () => string | undefined;
  /** Everything below `/admin/v1`; `docs/admin-api.md` lists it. */
  readonly control: readonly Route[];
}

const probe = { method: "GET", access: "public", answersAnyHost: true } as const;

/** Every path of the admin listener. */
export function adminRoutes(options: AdminRouteOptions): readonly Route[] {
  const { renderMetrics, whyNotReady, control } = options;
  return [
    { method: "GET", path: "/metrics", access: "public", handle: createMetricsPage(renderMetrics) },
    { ...probe, path: "/healthz", handle: health },
    { ...probe, path: "/readyz", handle: createReadiness(whyNotReady) },
    ...control,
  ];
}
