import {
  type EmbeddingRequest,
  type EmbeddingResult,
  type EmbeddingVector,
  isContent,
} from "../../domain/chat/embedding.ts";
import type { ScannedVectors } from "../../domain/chat/vector-scan.ts";
import {
  brokenAnswer,
  UpstreamFailure,
  type UpstreamFailureDetails,
} from "../../domain/errors/upstream-failure.ts";
import { listOf, numberOf, objectOf, usageIn, vectorAt } from "../../domain/json-fields.ts";
import { parseAnswer, readInputUsage } from "../shared/openai/read-answer.ts";
import type { OpenAiSettings } from "./config.ts";
import type { Clock } from "../../domain/clock.ts";
import type { EmbeddingCodec, EncodedEmbeddingRequest, UpstreamRequest } from "../adapter.ts";

/** `encoding`: the format to request; undefined: none. */
function encodeEmbeddings(
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

/** How long base64 is not requested of a model that refused it: its server may be updated. */
const plainMs = 10 * 60_000;

interface EmbeddingCodecParts {
  readonly settings: OpenAiSettings;
  readonly clock: Pick<Clock, "monotonic">;
  readonly post: (body: string) => UpstreamRequest;
}

/** Embeddings of a server that speaks OpenAI's wire format. */
export function createEmbeddingCodec(parts: EmbeddingCodecParts): EmbeddingCodec {
  const { settings, clock, post } = parts;
  /** Until when models are asked as their callers ask, by the upstream's name of the model. */
  const plainUntil = new Map<string, number>();
  const encoded = (
    request: EmbeddingRequest,
    model: string,
    encoding: EmbeddingRequest["encodingFormat"],
  ): EncodedEmbeddingRequest => ({
    request: post(encodeEmbeddings({ request, model }, encoding, settings)),
    decode: decodeEmbeddings,
  });
  return {
    batchLimit: () => settings.embeddingBatchLimit,
    takesTokenIds: settings.takesTokenIds,
    takesImages: () => false,
    encode(request, model) {
      const { embeddingEncoding } = settings;
      if (embeddingEncoding === "as_sent") return encoded(request, model, request.encodingFormat);
      if (embeddingEncoding !== "auto") return encoded(request, model, embeddingEncoding);
      if ((plainUntil.get(model) ?? 0) > clock.monotonic()) {
        return encoded(request, model, undefined);
      }
      return {
        ...encoded(request, model, "base64"),
        plainer(refusal) {
          if (!namesEncoding(refusal)) return undefined;
          const plain = encoded(request, model, undefined);
          return {
            ...plain,
            decode(answer) {
              // Had the caller's input been refused, this would have been refused too.
              plainUntil.set(model, clock.monotonic() + plainMs);
              return plain.decode(answer);
            },
          };
        },
      };
    },
  };
}

/** Whether a server refused the encoding of the vectors, in the words of any server. */
function namesEncoding({ kind, param, message, status }: UpstreamFailureDetails): boolean {
  const isRefusal = kind === "invalid-request" || kind === "unsupported";
  if (!isRefusal || (status !== 400 && status !== 422)) return false;
  return /encoding[_ ]?format|base64/i.test(`${param ?? ""} ${message}`);
}
