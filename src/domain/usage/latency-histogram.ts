/**
 * Latency histograms as text that merges by concatenation, so that SQLite can merge them: each
 * observation is a pair of characters that names its bucket, with a count if there are several.
 * `Ca` is one observation, `Ca12` twelve; `Ca` and `Ca12` joined are thirteen.
 *
 * Bucket bounds grow by a fixed factor, so that a value read back is within 4 % of the true one.
 */

/** All lower values share one bucket. */
const leastLatencyMs = 0.01;
const latencyGrowth = 1.08;
/** Enough for any lifetime of a process in milliseconds. */
const latencyBuckets = 992;
const lowBuckets = 31;
/** First code points of the two characters of a pair: none is a digit. */
const highCharacter = 64;
const lowCharacter = 96;

const zero = 48;
const nine = 57;

/** Encodes one observation; empty for NaN. */
export function encodeLatency(latencyMs: number): string {
  if (Number.isNaN(latencyMs)) return "";
  return bucketName(bucketOf(latencyMs));
}

/** Rewrites a histogram in the fewest characters. */
export function compactLatencies(text: string): string {
  const { counts, least, most } = countBuckets(text);
  let compact = "";
  for (let bucket = least; bucket <= most; bucket += 1) {
    const count = counts[bucket] ?? 0;
    if (count > 0) compact += bucketName(bucket) + (count > 1 ? String(count) : "");
  }
  return compact;
}

/** Percentiles by nearest rank; `shares` must ascend. Undefined without observations. */
export function latenciesAt(text: string, shares: readonly number[]): number[] | undefined {
  const { counts, total, least } = countBuckets(text);
  if (total === 0) return undefined;
  const found: number[] = [];
  let below = 0;
  let bucket = least - 1;
  for (const share of shares) {
    const rank = Math.min(total, Math.max(1, Math.ceil(share * total)));
    while (below < rank) {
      bucket += 1;
      below += counts[bucket] ?? 0;
    }
    found.push(middleOf(bucket));
  }
  return found;
}

function bucketOf(latencyMs: number): number {
  if (latencyMs <= leastLatencyMs) return 0;
  const bucket = Math.ceil(Math.log(latencyMs / leastLatencyMs) / Math.log(latencyGrowth));
  return Math.min(bucket, latencyBuckets - 1);
}

/** The value with the same relative distance to both bounds of the bucket. */
function middleOf(bucket: number): number {
  if (bucket === 0) return leastLatencyMs;
  return (2 * leastLatencyMs * latencyGrowth ** bucket) / (1 + latencyGrowth);
}

function bucketName(bucket: number): string {
  const high = Math.floor(bucket / lowBuckets);
  return String.fromCharCode(highCharacter + high, lowCharacter + (bucket % lowBuckets));
}

interface BucketCounts {
  /** By bucket, until the next text is counted. */
  readonly counts: Float64Array;
  readonly total: number;
  /** The first and last non-empty bucket. */
  readonly least: number;
  readonly most: number;
}

/** One array for all texts, because a report counts many. */
const counts = new Float64Array(latencyBuckets);

function countBuckets(text: string): BucketCounts {
  counts.fill(0);
  let [total, least, most, position] = [0, latencyBuckets, -1, 0];
  while (position + 1 < text.length) {
    const high = text.charCodeAt(position) - highCharacter;
    const bucket = high * lowBuckets + text.charCodeAt(position + 1) - lowCharacter;
    position += 2;
    let count = 0;
    for (; position < text.length; position += 1) {
      const digit = text.charCodeAt(position);
      if (digit < zero || digit > nine) break;
      count = count * 10 + digit - zero;
    }
    count = Math.max(1, count);
    counts[bucket] = (counts[bucket] ?? 0) + count;
    total += count;
    least = Math.min(least, bucket);
    most = Math.max(most, bucket);
  }
  return { counts, total, least, most };
}
