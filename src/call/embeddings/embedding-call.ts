import {
  countImages,
  type EmbeddingInput,
  type EmbeddingRequest,
  type EmbeddingResult,
  type EmbeddingVector,
  isContent,
  isImageText,
  type TextInput,
} from "../../domain/chat/embedding.ts";
import type { Model } from "../../domain/model.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { EmbeddingCodec } from "../../upstreams/adapter.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { checkContextWindow } from "../check-request.ts";
import { sendMissing } from "./embedding-batches.ts";
import { AnsweredParts } from "../answered-parts.ts";
import { measureEmbeddingInput } from "../../admission/estimate/estimate.ts";
import { ReadTexts } from "../../admission/estimate/fewest-tokens.ts";
import type { CallServices } from "../services.ts";
import { type CallWork, possibleTargets } from "../attempts/call-candidates.ts";
import { beginHooks, changedByHooks } from "../hooks.ts";
import { completeWhole, runCall, type StartedCall } from "../run-call.ts";

export interface EmbeddingCall {
  readonly request: EmbeddingRequest;
  /** Length of the JSON body, for the input estimate. */
  readonly bodyBytes: number;
  /** Decodes token ids for upstreams that accept only texts. Throws `GatewayError`. */
  readonly decodeTokens: (inputs: readonly TextInput[]) => Promise<readonly string[]>;
}

/** Runs an embeddings call to its complete answer. Throws `GatewayError`. */
export async function runEmbeddings(
  arriving: Call,
  read: EmbeddingCall,
  services: CallServices,
): Promise<StartedCall<EmbeddingResult>> {
  const call = beginHooks(arriving, services.onHookFailed);
  const asked = { kind: "embedding", request: read.request } as const;
  const embedding = { ...read, ...(await changedByHooks(call, asked, services.running)) };
  const started = await runCall(call, embeddingWork(embedding), services);
  started.meter.reported(started.answer.usage);
  return completeWhole(
    started,
    async (whole, hooks) => (await hooks.answering({ kind: "embedding", answer: whole })).answer,
  );
}

function embeddingWork(embedding: EmbeddingCall): CallWork<EmbeddingResult> {
  const { request, bodyBytes } = embedding;
  const size = { textBytes: bodyBytes, attachmentTokens: 0 };
  const sizeWithImages = measureEmbeddingInput(request, bodyBytes);
  const hasImages = sizeWithImages.attachmentTokens > 0;
  const images = hasImages ? countImages(request.inputs) : undefined;
  const progress = new AnsweredParts<EmbeddingVector>(request.inputs.length);
  // Token ids of one model say nothing about the count in another.
  const texts = new ReadTexts(request.inputs.flatMap(textsOf));
  return {
    alias: request.model,
    kind: "embedding",
    dialect: "embeddings",
    isStreamed: false,
    named: request,
    measure: (model, call) => (hasImages && readsImages(model, call) ? sizeWithImages : size),
    expectedOutput: () => ({ cap: 0, choices: 1 }),
    inputs: request.inputs.length,
    images,
    unanswered: () => progress.unanswered(),
    check(model) {
      // The window applies to each input.
      const tokens = texts.mostFor(model.contextWindow);
      checkContextWindow({ tokens, isCounted: false }, model, "input");
    },
    async attempt(attempt) {
      const codec = embeddingCodec(attempt.candidate);
      const inputs = await acceptableInputs(embedding, codec);
      const { call, candidate, services } = attempt;
      const { upstream, model } = candidate;
      const named = services.names.hide(
        request,
        call.caller.key.accountId,
        upstream.forwardEndUsers,
      );
      // Of the target: the caller may have used another name.
      const ofTarget = { ...named, model: model.alias };
      await sendMissing({ request: ofTarget, inputs, progress, codec, attempt });
      return { vectors: progress.all, usage: progress.usage };
    },
  };
}

/** Text that the model certainly reads. */
function textsOf(input: EmbeddingInput): readonly string[] {
  if (typeof input === "string") return isImageText(input) ? [] : [input];
  if (!isContent(input)) return [];
  return input.content.flatMap((part) => (part.type === "text" ? part.text : []));
}

/** Whether a possible upstream reads images; to others they are text. */
function readsImages(model: Model, call: Pick<Call, "snapshot" | "environment">): boolean {
  const { upstreams } = call.snapshot;
  return possibleTargets(model, call).some(({ alias, target }) =>
    upstreams.get(target.upstream)?.adapter.embeddings?.takesImages(alias, target.model),
  );
}

function embeddingCodec({ upstream }: Candidate): EmbeddingCodec {
  const { embeddings } = upstream.adapter;
  if (embeddings !== undefined) return embeddings;
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `upstream ${upstream.name} does not serve embedding models`,
  });
}

function acceptableInputs(
  { request, decodeTokens }: EmbeddingCall,
  codec: EmbeddingCodec,
): readonly EmbeddingInput[] | Promise<readonly EmbeddingInput[]> {
  if (codec.takesTokenIds) return request.inputs;
  // Token ids are never mixed with other inputs.
  const tokens = request.inputs.flatMap((input) =>
    typeof input === "string" || isContent(input) ? [] : [input],
  );
  return tokens.length === 0 ? request.inputs : decodeTokens(tokens);
}
