import { object, oneOf } from "../../request/checks.ts";

/**
 * Marks the end of what a provider may keep of a prompt, on messages, parts and tools: Anthropic's
 * field, as callers of other gateways send it. One without a type marks nothing.
 */
export const cacheControl = {
  cache_control: object({
    optional: { type: oneOf(["ephemeral"]), ttl: oneOf(["5m", "1h"]) },
  }),
};
