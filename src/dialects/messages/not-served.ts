import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";

/** Refuses another endpoint below `/v1/messages`, such as batches, as Claude Code expects it. */
export function refuseEndpoint({ request }: KeyCall): never {
  const { pathname } = new URL(request.url);
  throw new GatewayError("not_supported", {
    message:
      `${request.method} ${pathname.slice(0, 200)} is not served here. Use POST /v1/messages or ` +
      "POST /v1/messages/count_tokens.",
    headers: { "x-should-retry": "false" },
  });
}
