import { objectOf } from "../../shared/json-fields.ts";
import { cachePoint, type CachePoint } from "../encode/converse-body.ts";
import type { Capabilities } from "../config/capabilities.ts";

/**
 * The cache point that a caller wants after a message, a part or a tool: `cache_control`, as
 * Anthropic's and other gateways' callers send it, or OpenAI's `prompt_cache_breakpoint`. It is a
 * hint about cost: models without a prompt cache get none, and models that only cache for five
 * minutes do so.
 */
export function wantedCachePoint(
  holder: object,
  { promptCaching, promptCacheHour }: Capabilities,
): CachePoint | undefined {
  if (!promptCaching) return undefined;
  const control = "cache_control" in holder ? objectOf(holder.cache_control) : undefined;
  if (control?.["type"] === "ephemeral") {
    return control["ttl"] === "1h" && promptCacheHour ? hourPoint : cachePoint;
  }
  const breakpoint =
    "prompt_cache_breakpoint" in holder ? holder.prompt_cache_breakpoint : undefined;
  return objectOf(breakpoint) === undefined ? undefined : cachePoint;
}

const hourPoint: CachePoint = { cachePoint: { type: "default", ttl: "1h" } };
