import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import { usableModel, usableModels } from "../models/models.ts";

/**
 * `GET /v1/models` for clients of this dialect: chat models only, in pages, whose ends `after_id`
 * and `before_id` name.
 */
export function listMessagesModels(call: KeyCall): Reply {
  const query = new URL(call.request.url).searchParams;
  const all = usableModels(call).filter(([, { kind }]) => kind === "chat");
  const limit = readLimit(query.get("limit"));
  const after = query.get("after_id");
  const before = query.get("before_id");
  const places = all.map(([name]) => name);
  const rest = all.slice(
    after === null ? 0 : places.indexOf(after) + 1,
    before === null || !places.includes(before) ? undefined : places.indexOf(before),
  );
  // A page before an id is the one that ends there.
  const page = before === null ? rest.slice(0, limit) : rest.slice(-limit);
  return jsonReply({
    data: page.map(([name, model]) => modelBody(name, model)),
    has_more: page.length < rest.length,
    first_id: page[0]?.[0] ?? null,
    last_id: page.at(-1)?.[0] ?? null,
  });
}

/** `GET /v1/models/{id}` for clients of this dialect. */
export function retrieveMessagesModel(call: KeyCall): Reply {
  return jsonReply(modelBody(call.parameter, usableModel(call, "chat")));
}

function readLimit(text: string | null): number {
  const limit = text === null ? 20 : /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= 1000) return limit;
  throw new GatewayError("invalid_value", {
    message: "Expected a whole number from 1 to 1000.",
    param: "limit",
  });
}

function modelBody(name: string, model: Model): object {
  return {
    type: "model",
    id: name,
    display_name: name,
    created_at: new Date(model.created * 1000).toISOString().replace(".000Z", "Z"),
    max_input_tokens: model.contextWindow,
    max_tokens: model.maxOutputTokens,
  };
}
