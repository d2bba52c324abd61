import type { EmbeddingRequest, EmbeddingResult } from "../../../domain/chat/embedding.ts";
import type { VectorAnswer } from "../../adapter.ts";
import { invalidRequest, unsupported } from "../failures/refusal.ts";
import { inputTypes, type BedrockModelSettings, type InputType } from "../settings.ts";

/** How one family of embedding models is called through InvokeModel. */
export interface EmbeddingWire {
  /** Most inputs of one request. */
  batchLimit(request: EmbeddingRequest): number;
  readonly takesImages: boolean;
  encode(request: EmbeddingRequest, settings: InputSettings): string;
  decode(answer: VectorAnswer): EmbeddingResult;
}

export type InputSettings = Pick<BedrockModelSettings, "inputType" | "truncate">;

/** The purpose of the vectors: the caller's, or else the operator's. */
export function inputTypeOf(request: EmbeddingRequest, settings: InputSettings): InputType {
  const asked = request.inputType;
  if (asked === undefined) return settings.inputType;
  const known = inputTypes.find((type) => type === asked);
  if (known !== undefined) return known;
  throw invalidRequest(
    "input_type",
    `Invalid value: '${asked.slice(0, 64)}'. This model's input types are: ${inputTypes.join(", ")}.`,
  );
}

export function refuseOtherDimensions(request: EmbeddingRequest, known: readonly number[]): void {
  const { dimensions } = request;
  if (dimensions === undefined || known.includes(dimensions)) return;
  const list = known.length === 1 ? `only ${known[0]}` : `one of ${known.join(", ")}`;
  throw unsupported(
    "dimensions",
    `Invalid 'dimensions': ${dimensions}. This model supports ${list}.`,
  );
}
