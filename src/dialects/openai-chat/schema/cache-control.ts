import { object, oneOf } from "../../request/checks.ts";

/**
 * Anthropic's field on messages, parts and tools, as callers of other gateways send it: it ends the
 * part of a prompt that a provider may cache. Without a type it has no effect.
 */
export const cacheControl = {
  cache_control: object({
    optional: { type: oneOf(["ephemeral"]), ttl: oneOf(["5m", "1h"]) },
  }),
};
