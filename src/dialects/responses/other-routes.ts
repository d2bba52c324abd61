import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import { wrongMethod } from "../../edge/replies/route-refusal.ts";
import type { StoredResponses } from "../../idempotency/stored-responses.ts";
import { clip } from "../request/checks.ts";
import { storedResponse } from "./stored-input.ts";

/** `GET` and `DELETE /v1/responses/{id}`, for responses of the caller's account. */
export function createStoredRoutes({ responses }: { readonly responses: StoredResponses }) {
  return {
    retrieve: async (call: KeyCall): Promise<Reply> => {
      const id = idOf(call);
      const found = (await responses.find(call, [id])).get(id);
      if (found === undefined) throw notFound(id);
      return jsonReply(storedResponse(found));
    },
    remove: async (call: KeyCall): Promise<Reply> => {
      const id = idOf(call);
      if (!(await responses.remove(call, id))) throw notFound(id);
      return jsonReply({ id, object: "response.deleted", deleted: true });
    },
  };
}

function idOf({ parameter }: KeyCall): string {
  if (parameter.includes("/")) throw notServed(parameter);
  return parameter;
}

function notFound(id: string): GatewayError {
  return new GatewayError("response_not_found", {
    message: `Response with id '${clip(id)}' not found.`,
  });
}

/**
 * `GET /v1/responses`, by which clients ask for a WebSocket. After a 426 they send HTTP requests at
 * once; after a 404 Codex tries seven times.
 */
export function refuseUpgrade({ request }: KeyCall): never {
  const upgrade = request.headers.get("upgrade");
  if (upgrade === null) throw wrongMethod("GET", "/v1/responses", ["POST"]);
  throw new GatewayError("upgrade_required", {
    message: "WebSockets are not served. Send POST /v1/responses over HTTP, with 'stream': true.",
    headers: { upgrade: "HTTP/1.1" },
  });
}

/** `POST` below `/v1/responses`. */
export function refuseAction({ parameter }: KeyCall): never {
  throw notServed(parameter);
}

/** `tail` is the path behind `/v1/responses/`. */
function notServed(tail: string): GatewayError {
  const advice = adviceOf(tail.split("/").at(-1) ?? "");
  return new GatewayError("unknown_url", {
    message: `Unknown request URL: /v1/responses/${tail.slice(0, 200)}. ${advice}`,
  });
}

function adviceOf(action: string): string {
  switch (action) {
    case "cancel":
      return "Responses do not run in the background; close the connection to cancel one.";
    case "compact":
      return (
        "Conversations are not compacted here; ask the model for a summary by POST /v1/responses, " +
        "and go on from it."
      );
    case "input_items":
      return "Input is not listed; the application has it.";
    default:
      return "Please check the URL for typos; create responses by POST /v1/responses.";
  }
}
