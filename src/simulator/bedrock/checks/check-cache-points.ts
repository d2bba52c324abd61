import { isRecord, listOf, recordOf, type JsonRecord } from "../../read-json.ts";
import { BedrockError, invalid, modelError } from "../bedrock-error.ts";
import type { CapabilityRow } from "../account/capability-row.ts";

/** Throws `BedrockError` for cache points that the model does not support. */
export function checkCachePoints(body: JsonRecord, row: CapabilityRow): void {
  const points = [...pointsOf(body)];
  if (points.length > 4) {
    throw modelError("A maximum of 4 blocks with cache_control may be provided.");
  }
  const [first] = points;
  if (first === undefined) return;
  if (!row.cachePoints) {
    throw new BedrockError(
      "AccessDeniedException",
      "You invoked an unsupported model or your request did not allow prompt caching. See the " +
        "documentation for more information.",
    );
  }
  const inTools = points.find(({ place }) => place.startsWith("toolConfig"));
  if (inTools !== undefined && !row.toolCachePoints) {
    throw invalid(
      `Malformed input request: #/${inTools.place.replaceAll(".", "/")}: extraneous key ` +
        "[cachePoint] is not permitted, please reformat your input and try again.",
    );
  }
  checkLifetimes(points, row);
}

interface Point {
  /** `messages.0.content.1`. */
  readonly place: string;
  readonly ttl: unknown;
}

function checkLifetimes(points: readonly Point[], row: CapabilityRow): void {
  let isShort = false;
  for (const { place, ttl } of points) {
    if (ttl !== "1h") {
      isShort = true;
      continue;
    }
    if (!row.hourCachePoints) {
      throw row.contextText === "claude"
        ? modelError(`${place}.cache_control.ttl: Extra inputs are not permitted`)
        : invalid("Extended TTL prompt caching is only supported for Anthropic models");
    }
    if (!isShort) continue;
    throw modelError(
      `${place}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' ` +
        "cache_control block. Note that blocks are processed in the following order: `tools`, " +
        "`system`, `messages`.",
    );
  }
}

/** In the order in which a model reads them. */
function* pointsOf(body: JsonRecord): Generator<Point, void, void> {
  yield* pointsIn(listOf(recordOf(body["toolConfig"])["tools"]), "toolConfig.tools");
  yield* pointsIn(listOf(body["system"]), "system");
  for (const [turn, message] of listOf(body["messages"]).entries()) {
    yield* pointsIn(listOf(recordOf(message)["content"]), `messages.${turn}.content`);
  }
}

function* pointsIn(blocks: readonly unknown[], place: string): Generator<Point, void, void> {
  for (const [index, block] of blocks.entries()) {
    const { cachePoint } = recordOf(block);
    if (isRecord(cachePoint)) yield { place: `${place}.${index}`, ttl: cachePoint["ttl"] };
  }
}
