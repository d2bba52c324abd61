import {
  isContent,
  isImageText,
  type EmbeddingInput,
  type EmbeddingRequest,
  type EmbeddingResult,
  type TextInput,
} from "../../domain/chat/embedding.ts";
import type { Model } from "../../domain/model.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { EmbeddingCodec } from "../../upstreams/adapter.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Candidate } from "../../routing/candidates.ts";
import { checkContextWindow } from "../check-request.ts";
import { sendMissing } from "./embedding-batches.ts";
import { EmbeddingProgress } from "./embedding-progress.ts";
import { measureEmbeddingInput } from "../../admission/estimate/estimate.ts";
import { ReadTexts } from "../../admission/estimate/fewest-tokens.ts";
import type { CallWork } from "../call-work.ts";
import { possibleTargets } from "../attempts/possible-targets.ts";
import { runCall, type StartedCall } from "../run-call.ts";
import type { PipelineServices } from "../services.ts";

export interface EmbeddingCall {
  readonly request: EmbeddingRequest;
  /** Length of the JSON body; what the input estimate is made from. */
  readonly bodyBytes: number;
  /** Turns token ids into texts, for upstreams that take only texts. Throws `GatewayError`. */
  readonly decodeTokens: (inputs: readonly TextInput[]) => Promise<readonly string[]>;
}

/** Runs an embeddings call to its whole answer. Throws `GatewayError`. */
export async function runEmbeddings(
  call: Call,
  embedding: EmbeddingCall,
  services: PipelineServices,
): Promise<StartedCall<EmbeddingResult>> {
  const started = await runCall(call, embeddingWork(embedding), services);
  started.meter.reported(started.answer.usage);
  started.meter.completed();
  return started;
}

function embeddingWork(embedding: EmbeddingCall): CallWork<EmbeddingResult> {
  const { request, bodyBytes } = embedding;
  const size = { textBytes: bodyBytes, attachmentTokens: 0 };
  const sizeWithImages = measureEmbeddingInput(request, bodyBytes);
  const hasImages = sizeWithImages.attachmentTokens > 0;
  const progress = new EmbeddingProgress(request.inputs.length);
  // How many tokens the ids of one model are to another is not known.
  const texts = new ReadTexts(request.inputs.flatMap(textsOf));
  return {
    alias: request.model,
    kind: "embedding",
    isStreamed: false,
    measure: (model, call) => (hasImages && readsImages(model, call) ? sizeWithImages : size),
    output: { cap: 0, choices: 1 },
    check(model) {
      // The window holds for each input.
      const tokens = texts.mostFor(model.contextWindow);
      checkContextWindow({ tokens, isCounted: false }, model);
    },
    async attempt(candidate, context) {
      const codec = embeddingCodec(candidate);
      const inputs = await acceptableInputs(embedding, codec);
      await sendMissing({ request, inputs, progress, codec, candidate, context });
      context.meter.answering();
      return progress.result();
    },
  };
}

/** What a model certainly reads as text. */
function textsOf(input: EmbeddingInput): readonly string[] {
  if (typeof input === "string") return isImageText(input) ? [] : [input];
  if (!isContent(input)) return [];
  return input.content.flatMap((part) => (part.type === "text" ? part.text : []));
}

/** Whether any upstream that may serve reads images: to the others their data is text. */
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
  // Token ids never come together with other inputs.
  const tokens = request.inputs.flatMap((input) =>
    typeof input === "string" || isContent(input) ? [] : [input],
  );
  return tokens.length === 0 ? request.inputs : decodeTokens(tokens);
}
