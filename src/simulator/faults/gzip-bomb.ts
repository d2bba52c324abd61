import { constants, crc32, deflateRawSync } from "node:zlib";

import { isPause, type Frame, type Reply } from "../frame.ts";

const mebibyte = 1024 * 1024;
const gzipHead = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/**
 * A valid gzip body: mebibytes of filler that readers skip, then the real answer. One packed
 * mebibyte is made once and repeated, so it costs almost nothing.
 */
export function* gzipBomb(
  { steps, filler: makeFiller = whiteSpace }: Pick<Reply, "steps" | "filler">,
  mebibytes: number,
): Generator<Frame, void, void> {
  const filler = makeFiller(mebibyte);
  // A full flush ends at a byte boundary, and later blocks do not refer to what is before it.
  const packedFiller = pack(filler, constants.Z_FULL_FLUSH);
  let checksum = 0;
  let size = 0;
  yield { data: gzipHead, tokens: 0 };
  for (let index = 0; index < mebibytes; index++) {
    checksum = crc32(filler, checksum);
    size += filler.length;
    yield { data: packedFiller, tokens: 0 };
  }
  for (const step of steps) {
    if (isPause(step)) continue;
    const bytes = Buffer.from(step.data);
    checksum = crc32(bytes, checksum);
    size += bytes.length;
    yield { ...step, data: pack(bytes, constants.Z_FULL_FLUSH) };
  }
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(checksum, 0);
  tail.writeUInt32LE(size % 2 ** 32, 4);
  const last = pack(Buffer.alloc(0), constants.Z_FINISH);
  yield { data: new Uint8Array(Buffer.concat([last, tail])), tokens: 0 };
}

/** Allowed before JSON and between server-sent events. */
function whiteSpace(sizeBytes: number): Uint8Array {
  return Buffer.alloc(sizeBytes, "\n");
}

function pack(bytes: Uint8Array, finishFlush: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(deflateRawSync(bytes, { finishFlush, level: 9 }));
}
