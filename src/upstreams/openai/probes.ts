import {
  countOf,
  type JsonObject,
  listOf,
  objectOf,
  parseObject,
} from "../../domain/json-fields.ts";
import type { ServerProbe, UpstreamRequest } from "../adapter.ts";
import { isJson } from "../shared/whole-body.ts";
import type { OpenAiSettings } from "./config.ts";
import questions from "./probes.json" with { type: "json" };

/** Questions about what the settings do not say yet. A profile answers most of them. */
export function serverProbes(
  { maxTokensField, instructionRole, takesTokenIds, quirks }: OpenAiSettings,
  model: string,
  post: (path: string, body: string) => UpstreamRequest,
): ServerProbe[] {
  const said = new Set([...quirks].map((name) => `quirks: [${name}]`));
  said.add(`max_tokens_field: ${maxTokensField}`);
  said.add(`instruction_role: ${instructionRole}`);
  said.add(`takes_token_ids: ${takesTokenIds}`);
  const probes: ServerProbe[] = [];
  for (const { set, about, body, shows } of questions) {
    const isForVectors = "input" in body;
    const isWhole = !isForVectors && !("stream" in body);
    if (said.has(set) || (isWhole && quirks.has("streams_only"))) continue;
    const path = isForVectors ? "/embeddings" : "/chat/completions";
    probes.push({
      kind: isForVectors ? "embedding" : "chat",
      request: post(path, JSON.stringify({ model, ...body })),
      set,
      about,
      isNeeded: evidence[shows] ?? (() => false),
      isFirst: set === "quirks: [streams_only]",
    });
  }
  return probes;
}

const isRefused: ServerProbe["isNeeded"] = ({ refusal }) => refusal !== undefined;

/** What shows the need, as `probes.json` names it. */
const evidence: Readonly<Record<string, ServerProbe["isNeeded"]>> = {
  "a refusal": isRefused,
  "a refusal for reasoning_content": ({ refusal }) =>
    refusal?.includes("reasoning_content") === true,
  "a refusal for thought_signature": ({ refusal }) =>
    refusal?.includes("thought_signature") === true,
  "a refusal, or more than 32 tokens": (answer) => {
    const usage = objectOf(fieldsOf(answer)?.["usage"]);
    return isRefused(answer) || (countOf(usage?.["completion_tokens"]) ?? 0) > 32;
  },
  "a refusal, or one choice": (answer) =>
    isRefused(answer) || listOf(fieldsOf(answer)?.["choices"])?.length === 1,
  "a whole answer": ({ body }) => body !== undefined && isJson(body),
};

function fieldsOf({ body }: { readonly body?: Uint8Array }): JsonObject | undefined {
  return body === undefined ? undefined : parseObject(body);
}
