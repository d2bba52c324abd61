import {
  isContent,
  type EmbeddingRequest,
  type EmbeddingResult,
} from "../../../domain/chat/embedding.ts";
import type { EmbeddingVector } from "../../../domain/chat/embedding-vector.ts";
import type { ScannedVectors } from "../../../domain/chat/vector-scan.ts";
import { brokenAnswer, UpstreamFailure } from "../../../domain/errors/upstream-failure.ts";
import { listOf, numberOf, objectOf } from "../../shared/json-fields.ts";
import { usageIn } from "../../shared/usage-in.ts";
import { vectorAt } from "../../shared/vector-at.ts";
import { parseAnswer, readInputUsage } from "../read-answer.ts";
import type { OpenAiSettings } from "../settings.ts";

/** `encoding`: the format to request; undefined: none. */
export function encodeEmbeddings(
  { request, model }: { readonly request: EmbeddingRequest; readonly model: string },
  encoding: EmbeddingRequest["encodingFormat"],
  settings: Pick<OpenAiSettings, "forwardFields" | "dropFields">,
): string {
  const { inputs, dimensions, user } = request;
  if (inputs.some(isContent)) throw onlyText();
  const body: Record<string, unknown> = {};
  for (const field of settings.forwardFields) body[field] = request.sent?.[field] ?? undefined;
  Object.assign(body, {
    model,
    input: inputs.length === 1 ? inputs[0] : inputs,
    encoding_format: encoding,
    dimensions,
    user,
  });
  for (const field of settings.dropFields) delete body[field];
  return JSON.stringify(body);
}

/** OpenAI's API accepts no other inputs. */
function onlyText(): UpstreamFailure {
  return new UpstreamFailure({
    kind: "unsupported",
    message: "This model accepts texts and token ids as 'input', not lists of parts. Send a text.",
    param: "input",
  });
}

/** Reads a list of embeddings. What an answer has cost is known even if it is broken. */
export function decodeEmbeddings(scanned: ScannedVectors): EmbeddingResult {
  try {
    return readEmbeddings(scanned);
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    throw error.withUsage(readInputUsage(usageIn(Buffer.from(scanned.json))));
  }
}

/** Sorts them by the `index` fields. */
function readEmbeddings({ json, vectors }: ScannedVectors): EmbeddingResult {
  const answer = parseAnswer(json, "data");
  const items = listOf(answer["data"]) ?? [];
  const byIndex = new Map<number, EmbeddingVector>();
  items.forEach((value, position) => {
    const item = objectOf(value);
    const vector = vectorAt(item?.["embedding"], vectors);
    if (vector === undefined) throw brokenAnswer("a vector is not a list of numbers");
    // Servers that leave out what is 0 have no index at the first one.
    byIndex.set(numberOf(item?.["index"] ?? position) ?? -1, vector);
  });
  const ordered = items.map((_, index) => byIndex.get(index));
  const found = ordered.filter((vector) => vector !== undefined);
  if (items.length === 0 || found.length !== items.length) {
    throw brokenAnswer("vectors are missing, or their indexes are not those of the inputs");
  }
  return { vectors: found, usage: readInputUsage(answer["usage"]) };
}
