import {
  brotliDecompress,
  gunzip,
  inflate,
  zstdDecompress,
  type CompressCallback,
  type InputType,
} from "node:zlib";
import { GatewayError } from "../domain/gateway-error.ts";

type Decompressor = (
  input: InputType,
  options: { maxOutputLength: number },
  callback: CompressCallback,
) => void;

const decompressors: ReadonlyMap<string, Decompressor> = new Map<string, Decompressor>([
  ["gzip", gunzip],
  ["x-gzip", gunzip],
  ["deflate", inflate],
  ["br", brotliDecompress],
  ["zstd", zstdDecompress],
]);

/** Undoes one content encoding, off the main thread, giving up at `limitBytes` of output. */
export function decompress(
  body: Uint8Array,
  encoding: string,
  limitBytes: number,
): Promise<Uint8Array> {
  const run = decompressors.get(encoding);
  if (run === undefined) throw unsupported(encoding);
  return new Promise((resolve, reject) => {
    run(body, { maxOutputLength: limitBytes }, (error, result) => {
      if (error === null) resolve(result);
      else reject(explain(error, encoding, limitBytes));
    });
  });
}

function unsupported(encoding: string): GatewayError {
  return new GatewayError("unsupported_content_type", {
    message:
      `Unsupported content encoding: '${encoding.slice(0, 100)}'. ` +
      "Send the body uncompressed, or with one of 'gzip', 'deflate', 'br' and 'zstd'.",
    headers: { connection: "close" },
  });
}

function explain(error: Error, encoding: string, limitBytes: number): GatewayError {
  if ("code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
    return new GatewayError("request_too_large", {
      message: `Maximum content size limit (${limitBytes}) exceeded by the decompressed body.`,
      cause: error,
    });
  }
  return new GatewayError("invalid_json", {
    message: `We could not decompress the body of your request as '${encoding}'.`,
    cause: error,
  });
}
