import { Random } from "../answer/random.ts";
import { isPause, type Frame, type Step } from "../frame.ts";

/** How much of an answer may be held back and joined with the next frames. */
const joinedLimitBytes = 16 * 1024;

/**
 * Cuts an answer into writes regardless of its frames: some are a single byte, some end inside a
 * frame, some contain several frames and the beginning of the next. The same seed cuts at the same
 * places.
 */
export function* splitWrites(steps: Iterable<Step>, seed: number): Generator<Step, void, void> {
  const random = new Random(seed);
  let waiting: readonly Frame[] = [];
  for (const step of steps) {
    if (isPause(step)) {
      yield* cutWrites(waiting, random);
      waiting = [];
      yield step;
      continue;
    }
    waiting = [...waiting, step];
    const size = waiting.reduce((total, { data }) => total + data.length, 0);
    if (size < joinedLimitBytes && random.chance(0.4)) continue;
    yield* cutWrites(waiting, random);
    waiting = [];
  }
  yield* cutWrites(waiting, random);
}

/** Tokens count with the write that has the last byte of their frame. */
function* cutWrites(frames: readonly Frame[], random: Random): Generator<Frame, void, void> {
  const ends: { readonly end: number; readonly frame: Frame }[] = [];
  let length = 0;
  const parts = frames.map((frame) => {
    const bytes = Buffer.from(frame.data);
    length += bytes.length;
    ends.push({ end: length, frame });
    return bytes;
  });
  const bytes = new Uint8Array(Buffer.concat(parts));
  for (let start = 0; start < bytes.length;) {
    const end = Math.min(bytes.length, start + nextSize(random));
    const done = ends.filter((place) => place.end > start && place.end <= end);
    yield {
      data: bytes.slice(start, end),
      tokens: done.reduce((total, { frame }) => total + frame.tokens, 0),
      hasUsage: done.some(({ frame }) => frame.hasUsage === true),
    };
    start = end;
  }
}

/** One byte often enough to split every number of a prelude, else up to a few frames. */
function nextSize(random: Random): number {
  if (random.chance(0.3)) return 1;
  return random.chance(0.5) ? random.integer(2, 24) : random.integer(25, 1024);
}
