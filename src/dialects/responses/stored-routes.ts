import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import type { StoredResponses } from "../../idempotency/stored-responses.ts";
import { clip } from "../request/checks.ts";
import { notServed } from "./not-served.ts";
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
