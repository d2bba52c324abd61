import type { Transform } from "node:stream";
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { joinChunks } from "../../domain/chat/bytes.ts";

export interface DecompressionLimits {
  readonly decompressedLimitBytes: number;
  /** Most bytes of output for one of input; not applied to output up to `freeBytes`. */
  readonly decompressionRatio: number;
}

/** Small outputs do no harm, and short repetitive bodies have a high ratio. */
const freeBytes = 1024 * 1024;
/** Size of a piece of output; each has its own turn of the event loop. */
const pieceBytes = 128 * 1024;

type NewDecompressor = () => Transform;

const decompressors: ReadonlyMap<string, NewDecompressor> = new Map<string, NewDecompressor>([
  ["gzip", () => createGunzip({ chunkSize: pieceBytes })],
  ["x-gzip", () => createGunzip({ chunkSize: pieceBytes })],
  ["deflate", () => createInflate({ chunkSize: pieceBytes })],
  ["br", () => createBrotliDecompress({ chunkSize: pieceBytes })],
  ["zstd", () => createZstdDecompress({ chunkSize: pieceBytes })],
]);

/** Called with each piece before the next is made; throws to stop. */
type OnPiece = (piece: Uint8Array) => void | Promise<void>;

/**
 * Decodes one content encoding off the main thread, piece by piece, and stops at the first byte
 * over a limit. Throws 400, 413 or 415, and errors of `onPiece`.
 */
export async function decompress(
  { body, encoding }: { readonly body: Uint8Array; readonly encoding: string },
  limits: DecompressionLimits,
  onPiece: OnPiece,
): Promise<Uint8Array> {
  const newDecompressor = decompressors.get(encoding);
  if (newDecompressor === undefined) throw unsupported(encoding);
  const pieces: Uint8Array[] = [];
  let size = 0;
  const check = limitOf(body.byteLength, limits);
  const decompressor = newDecompressor();
  decompressor.end(body);
  try {
    for await (const piece of decompressor) {
      if (!(piece instanceof Uint8Array)) throw new TypeError("a decompressor gave no bytes");
      size += piece.byteLength;
      check(size);
      await onPiece(piece);
      pieces.push(piece);
    }
  } catch (error) {
    throw isOfDecompressor(error) ? undecodable(encoding, error) : error;
  } finally {
    decompressor.destroy();
  }
  return joinChunks(pieces, size);
}

/** The size to which a compressed body may expand. */
export function mostExpandedBytes(wireBytes: number, limits: DecompressionLimits): number {
  const ratioBytes = Math.max(freeBytes, wireBytes * limits.decompressionRatio);
  return Math.min(limits.decompressedLimitBytes, ratioBytes);
}

/** Returns a check that throws 413 for an output too large for the input. */
function limitOf(wireBytes: number, limits: DecompressionLimits): (size: number) => void {
  const { decompressedLimitBytes: limit, decompressionRatio: ratio } = limits;
  const mostBytes = mostExpandedBytes(wireBytes, limits);
  return (size) => {
    if (size <= mostBytes) return;
    if (size > limit) {
      const message = `Maximum content size limit (${limit}) exceeded by the decompressed body.`;
      throw new GatewayError("request_too_large", { message });
    }
    throw new GatewayError("request_too_large", {
      message:
        `The body of your request expands to more than ${ratio} times its size. ` +
        "Please send it uncompressed.",
    });
  };
}

/** Errors of zlib, brotli and zstd have a `code`; `onPiece` throws a `GatewayError`. */
function isOfDecompressor(error: unknown): boolean {
  return error instanceof Error && "code" in error && !(error instanceof GatewayError);
}

function unsupported(encoding: string): GatewayError {
  return new GatewayError("unsupported_content_type", {
    message:
      `Unsupported content encoding: '${encoding.slice(0, 100)}'. ` +
      "Send the body uncompressed, or with one of 'gzip', 'deflate', 'br' and 'zstd'.",
    headers: { connection: "close" },
  });
}

function undecodable(encoding: string, cause: unknown): GatewayError {
  return new GatewayError("invalid_json", {
    message: `We could not decompress the body of your request as '${encoding}'.`,
    cause,
  });
}
