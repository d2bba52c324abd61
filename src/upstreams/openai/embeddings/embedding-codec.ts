import type { Clock } from "../../../domain/clock.ts";
import type { EmbeddingRequest } from "../../../domain/chat/embedding.ts";
import type { UpstreamFailureDetails } from "../../../domain/errors/upstream-failure.ts";
import type { EmbeddingCodec, EmbeddingExchange, UpstreamRequest } from "../../adapter.ts";
import type { OpenAiSettings } from "../settings.ts";
import { decodeEmbeddings, encodeEmbeddings } from "./embeddings.ts";

/** How long base64 is not requested of a model that refused it: its server may be updated. */
const plainMs = 10 * 60_000;

export interface EmbeddingCodecParts {
  readonly settings: OpenAiSettings;
  readonly clock: Pick<Clock, "monotonic">;
  readonly post: (body: string) => UpstreamRequest;
}

/** Embeddings of a server that speaks OpenAI's wire format. */
export function createEmbeddingCodec(parts: EmbeddingCodecParts): EmbeddingCodec {
  const { settings, clock, post } = parts;
  /** Until when models are asked as their callers ask, by the upstream's name of the model. */
  const plainUntil = new Map<string, number>();
  const exchange = (
    request: EmbeddingRequest,
    model: string,
    encoding: EmbeddingRequest["encodingFormat"],
  ): EmbeddingExchange => ({
    request: post(encodeEmbeddings({ request, model }, encoding, settings)),
    decode: decodeEmbeddings,
  });
  return {
    batchLimit: () => settings.embeddingBatchLimit,
    takesTokenIds: settings.takesTokenIds,
    takesImages: () => false,
    encode(request, model) {
      const { embeddingEncoding } = settings;
      if (embeddingEncoding === "as_sent") return exchange(request, model, request.encodingFormat);
      if (embeddingEncoding !== "auto") return exchange(request, model, embeddingEncoding);
      if ((plainUntil.get(model) ?? 0) > clock.monotonic()) {
        return exchange(request, model, undefined);
      }
      return {
        ...exchange(request, model, "base64"),
        plainer(refusal) {
          if (!namesEncoding(refusal)) return undefined;
          const plain = exchange(request, model, undefined);
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
