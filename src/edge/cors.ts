import type { Reply } from "./replies/error-reply.ts";

/** Response headers that scripts in a browser may read. */
const exposedHeaders = [
  "x-request-id",
  "request-id",
  "x-sluice-served-by",
  "x-sluice-would-refuse",
  "x-sluice-target",
  "x-sluice-cost-usd",
  "x-sluice-budget-reset",
  "x-sluice-adjusted-parameters",
  "x-sluice-queue-position",
  "x-sluice-queue-wait-ms",
  "idempotent-replayed",
  "openai-processing-ms",
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  "x-ratelimit-limit-requests",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-requests",
  "x-ratelimit-reset-tokens",
  "anthropic-ratelimit-requests-limit",
  "anthropic-ratelimit-requests-remaining",
  "anthropic-ratelimit-requests-reset",
  "anthropic-ratelimit-tokens-limit",
  "anthropic-ratelimit-tokens-remaining",
  "anthropic-ratelimit-tokens-reset",
  "x-sluice-estimate",
].join(", ");

/** Cross-origin rules for browsers. Keys travel in a header, so credentials are not allowed. */
export class CorsPolicy {
  readonly #origins: ReadonlySet<string>;
  readonly #allowsAny: boolean;

  constructor(allowedOrigins: readonly string[]) {
    this.#origins = new Set(allowedOrigins);
    this.#allowsAny = this.#origins.has("*");
  }

  /** Response headers for this origin; none when it is absent or not allowed. */
  headersFor(origin: string | null): Readonly<Record<string, string>> {
    if (origin === null || !(this.#allowsAny || this.#origins.has(origin))) return {};
    return {
      "access-control-allow-origin": this.#allowsAny ? "*" : origin,
      "access-control-expose-headers": exposedHeaders,
      vary: "origin",
    };
  }

  /** Answers a preflight and reflects the requested names: SDKs send `x-stainless-*` headers. */
  preflight(request: Request, methods: readonly string[]): Reply {
    const allowed = this.headersFor(request.headers.get("origin"));
    const asked = request.headers.get("access-control-request-headers");
    return {
      status: 204,
      headers: {
        ...allowed,
        allow: methods.join(", "),
        ...("access-control-allow-origin" in allowed && {
          "access-control-allow-methods": methods.join(", "),
          "access-control-allow-headers": asked ?? "authorization, content-type",
          "access-control-max-age": "86400",
        }),
      },
      body: null,
    };
  }
}
