import { GatewayError } from "../domain/errors/gateway-error.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { idempotencyHeader } from "./refusals.ts";

/** Undefined when none was sent, or the caller's plan does not have them. Throws 400. */
export function readIdempotencyKey({ request, snapshot, caller }: KeyCall): string | undefined {
  const written = request.headers.get(idempotencyHeader);
  if (written === null) return undefined;
  if (snapshot.plans.get(caller.key.plan)?.isIdempotent !== true) return undefined;
  // Two such headers arrive as one text with a space in it.
  if (/^[\x21-\x7e]{1,255}$/.test(written)) return written;
  throw new GatewayError("invalid_value", {
    message:
      `Invalid header '${idempotencyHeader}': must be 1 to 255 visible ASCII characters, ` +
      "without spaces.",
    param: idempotencyHeader,
  });
}
