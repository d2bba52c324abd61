import { VectorScan, type ScannedVectors } from "../domain/chat/vector-scan.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { nextTurn, oneTurnBytes, whenKnown } from "../domain/waiting/wait.ts";
import type { EncodedEmbeddingRequest } from "../upstreams/adapter.ts";
import type { UpstreamAnswer } from "./send.ts";

export interface VectorLimits {
  /** The inputs of the request. */
  readonly inputs: number;
  /** The inputs of all requests that share the memory. */
  readonly callInputs?: number;
  /** Takes the memory of that many bytes once; further calls do nothing. */
  readonly memory?: { reserve(bytes: number): void | Promise<void> } | undefined;
}

/** Some models answer with lists of several types, and with other lists of a few numbers. */
const listsPerInput = 2;
const otherLists = 64;

/**
 * Reads an answer of vectors, a slice in each turn of the event loop; a promise unless it came with
 * the headers. The upstream waits while there is no memory: that of all vectors is taken when the
 * length of one is known.
 */
export function readVectors(
  answer: Pick<UpstreamAnswer, "readPieces">,
  limitBytes: number,
  { inputs, callInputs = inputs, memory }: VectorLimits,
): ScannedVectors | Promise<ScannedVectors> {
  const scan = new VectorScan(listsPerInput * inputs + otherLists);
  let isReserved = memory === undefined;
  let bytes = 0;
  const hold = (): void | Promise<void> => {
    const vectorBytes = scan.vectors.at(-1)?.byteLength ?? 0;
    const callBytes = vectorBytes * callInputs;
    if (isReserved || callBytes <= oneTurnBytes) return undefined;
    isReserved = true;
    return memory?.reserve(callBytes);
  };
  let turnBytes = 0;
  /** Base64 is read several times as fast as numbers. */
  const mostBytes = (): number => (scan.vectors[0]?.isBase64 === true ? 4 : 1) * oneTurnBytes;
  const readLong = async (piece: Uint8Array): Promise<void> => {
    for (let at = 0; at < piece.byteLength; at += oneTurnBytes) {
      const part = piece.subarray(at, at + oneTurnBytes);
      turnBytes += part.byteLength;
      if (turnBytes > mostBytes()) {
        await nextTurn();
        turnBytes = part.byteLength;
      }
      scan.push(part);
      await hold();
    }
  };
  const reading = answer.readPieces(limitBytes, (piece) => {
    bytes += piece.byteLength;
    if (bytes > oneTurnBytes) return readLong(piece);
    scan.push(piece);
    return hold();
  });
  return whenKnown(reading, () => scan.end());
}

/** Sends a request, and once more without what the gateway added to it if the upstream refuses that. */
export async function sendPlainer<Result>(
  encoded: EncodedEmbeddingRequest,
  sendIt: (encoded: EncodedEmbeddingRequest) => Promise<Result>,
): Promise<Result> {
  try {
    return await sendIt(encoded);
  } catch (error) {
    const refusal = error instanceof UpstreamFailure ? error.details : undefined;
    const plainer = refusal && encoded.plainer?.(refusal);
    if (plainer === undefined) throw error;
    return sendIt(plainer);
  }
}
