import type { Conversation } from "../../domain/chat/conversation.ts";
import type { Clock } from "../../domain/clock.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import type { Destination } from "../../routing/candidates.ts";
import { EventReader } from "../../upstream-client/event-reader.ts";
import { readVectors, sendPlainer } from "../../upstream-client/read-vectors.ts";
import { type RequestPlaces, send, type UpstreamAnswer } from "../../upstream-client/send.ts";
import { timeoutsOf, type Transport } from "../../upstream-client/transport.ts";
import type { ServerProbe, UpstreamRequest } from "../../upstreams/adapter.ts";

export interface AskedTarget extends Destination {
  /** Timeout of the first event. */
  readonly timeoutMs: number;
  /** Limit on an answer of an embedding model. */
  readonly answerLimitBytes: number;
}

export interface AskServices {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly places: RequestPlaces;
}

const answerTokens = 16;
/** Limit on a whole chat answer, in bytes and values, if a target does not stream. */
const probeAnswerBytes = 1024 * 1024;
/** Time limits after the first event. */
const restMs = 5_000;
const leastIdleMs = 1_000;

/** Asks a target for a few tokens and reads the answer to its end. Throws `UpstreamFailure`. */
export async function askTarget(asked: AskedTarget, services: AskServices): Promise<void> {
  if (asked.model.kind === "chat") await askChat(asked, services);
  else await askEmbedding(asked, services);
}

async function askChat(asked: AskedTarget, services: AskServices): Promise<void> {
  const { chat } = asked.upstream.adapter;
  if (chat === undefined) return;
  const exchange = chat.encodeStream(pingOf(asked.model.alias), asked.target.model);
  const answer = await sendTo(asked, exchange.request, services);
  const decoder = exchange.newDecoder({
    malformedEvents: 0,
    answerLimitBytes: probeAnswerBytes,
    answerValues: probeAnswerBytes,
  });
  const events = new EventReader({ answer, decoder, onMalformed: () => undefined });
  while ((await nextOf(events)) !== undefined);
}

function pingOf(model: string): Conversation {
  const at = "messages[0]";
  const blocks = [{ type: "text", text: "ping", at } as const];
  return {
    wire: "chat",
    model,
    isStreamed: true,
    turns: [{ role: "user", blocks, isPlain: true, at }],
    tools: [],
    caps: [{ field: "max_tokens", tokens: answerTokens }],
    options: {},
    extra: {},
  };
}

async function askEmbedding(asked: AskedTarget, services: AskServices): Promise<void> {
  const { embeddings } = asked.upstream.adapter;
  if (embeddings === undefined) return;
  const request = {
    model: asked.model.alias,
    inputs: ["ping"],
    dimensions: undefined,
    user: undefined,
    encodingFormat: undefined,
  } as const;
  await sendPlainer(embeddings.encode(request, asked.target.model), async (exchange) => {
    const answer = await sendTo(asked, exchange.request, services);
    const scanned = await readVectors(answer, asked.answerLimitBytes, { inputs: 1 });
    exchange.decode({ headers: answer.headers, ...scanned });
  });
}

/** What refuses a question itself; anything else says nothing of it. */
const refusals: ReadonlySet<string> = new Set(["invalid-request", "unsupported", "unavailable"]);

/** The probes of the target's server that show the need of a setting. Throws other `UpstreamFailure`s. */
export async function probeTarget(
  asked: AskedTarget,
  services: AskServices,
): Promise<readonly ServerProbe[]> {
  const { model, target, upstream } = asked;
  const needed: ServerProbe[] = [];
  for (const probe of upstream.adapter.probes?.(model.alias, target.model) ?? []) {
    if (probe.kind !== model.kind) continue;
    try {
      const answer = await sendTo(asked, probe.request, services);
      if (probe.isNeeded({ body: await answer.readAll(probeAnswerBytes) })) needed.push(probe);
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || !refusals.has(error.details.kind)) throw error;
      if (probe.isNeeded({ refusal: error.details.message })) needed.push(probe);
    }
    if (probe.isFirst && needed.length > 0) return needed;
  }
  return needed;
}

function sendTo(
  { model, upstream, timeoutMs }: AskedTarget,
  request: UpstreamRequest,
  { clock, transport, places }: AskServices,
): Promise<UpstreamAnswer> {
  const timeouts = timeoutsOf({ model, upstream });
  const firstByteMs = Math.min(timeouts.firstByteMs, timeoutMs);
  return send(request, {
    upstream,
    timeouts: {
      ...timeouts,
      firstByteMs,
      idleMs: Math.min(timeouts.idleMs, Math.max(leastIdleMs, timeoutMs)),
    },
    endsAt: clock.monotonic() + firstByteMs + restMs,
    clock,
    transport,
    // There is no caller to disconnect.
    callerSignal: new AbortController().signal,
    places,
  });
}
