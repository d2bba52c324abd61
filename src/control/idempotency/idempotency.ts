import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { ControlView, StoredReply } from "../../store/control-store.ts";
import type { PepperKey } from "../../domain/keys/peppers.ts";
import type { Operation, OperationCall, ReplyKeeper } from "../operation/operation.ts";
import { openReply, sealReply, type ReplySeal } from "./reply-seal.ts";
import type { AdminServices } from "../services.ts";
import { WaitingCallers } from "./waiting-callers.ts";

/** How long a request is known under its key. */
const knownMs = 24 * 3_600_000;
/** How long an answer with a secret may be shown again: for answers that were lost on the way. */
const secretShownMs = 10 * 60_000;

export interface IdempotentRequest {
  /** What the caller chose to tell this request by. */
  readonly key: string;
  readonly operation: Operation;
  readonly call: OperationCall;
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly isReplayed: boolean;
}

/** The signal fires when nobody waits for the answer any more. */
type Work = (replies: ReplyKeeper, signal: AbortSignal) => Promise<unknown>;

interface RunningRequest {
  readonly requestDigest: string;
  readonly answer: Promise<Answered>;
  readonly waiting: WaitingCallers;
}

/**
 * Runs a change once for all requests of one principal with one idempotency key: while it runs,
 * equal requests wait for it; afterwards they get the answer that was kept in the transaction of
 * the change. A request that failed has changed nothing and may be tried again.
 */
export class Idempotency {
  readonly #services: Pick<AdminServices, "store" | "clock" | "random" | "peppers">;
  readonly #running = new Map<string, RunningRequest>();

  constructor(services: Pick<AdminServices, "store" | "clock" | "random" | "peppers">) {
    this.#services = services;
  }

  async run(request: IdempotentRequest, work: Work): Promise<Answered> {
    const { peppers } = this.#services;
    const names = nameRequest(request, peppers.first);
    const { signal } = request.call;
    let running = this.#running.get(names.id);
    while (running?.waiting.isAbandoned === true) {
      await running.answer.catch(() => undefined);
      running = this.#running.get(names.id);
    }
    if (running !== undefined) {
      if (running.requestDigest !== names.requestDigest) throw keyReused();
      running.waiting.join(signal);
      return { ...(await running.answer), isReplayed: true };
    }
    const waiting = new WaitingCallers(signal);
    const answer = this.#once(request, names, (replies) => work(replies, waiting.signal));
    this.#running.set(names.id, { requestDigest: names.requestDigest, answer, waiting });
    try {
      return await answer;
    } finally {
      this.#running.delete(names.id);
    }
  }

  async #once(
    request: IdempotentRequest,
    names: ReplySeal,
    work: (replies: ReplyKeeper) => Promise<unknown>,
  ): Promise<Answered> {
    const { store, peppers } = this.#services;
    // Before a rotation of the peppers the request had other names.
    const all = peppers.all.map((pepper) => nameRequest(request, pepper));
    const known = await store.read((view) => this.#find(view, all));
    if (known !== undefined) return this.#replay(known, all);
    let isKept = false;
    const keeper: ReplyKeeper = {
      expectNone: async (transaction) => {
        const stored = await this.#find(transaction, all);
        if (stored !== undefined) throw new DoneElsewhere(stored);
      },
      keep: async (transaction, answer) => {
        await transaction.replies.put(this.#toReply(request.operation, names, answer));
        isKept = true;
      },
    };
    try {
      const body = await work(keeper);
      if (!isKept) await store.change((transaction) => keeper.keep(transaction, body));
      return { status: request.operation.status, body, isReplayed: false };
    } catch (error) {
      if (error instanceof DoneElsewhere) return this.#replay(error.reply, all);
      throw error;
    }
  }

  #isKnown(reply: StoredReply | undefined): reply is StoredReply {
    return reply !== undefined && this.#services.clock.now() - reply.createdAt < knownMs;
  }

  #toReply(operation: Operation, names: ReplySeal, answer: unknown): StoredReply {
    const now = this.#services.clock.now();
    return {
      id: names.id,
      requestDigest: names.requestDigest,
      status: operation.status,
      body: sealReply(JSON.stringify(answer), names, this.#services),
      createdAt: now,
      shownUntil: now + (operation.hasSecret === true ? secretShownMs : knownMs),
    };
  }

  async #find(view: ControlView, all: readonly ReplySeal[]): Promise<StoredReply | undefined> {
    for (const { id } of all) {
      const reply = await view.replies.get(id);
      if (this.#isKnown(reply)) return reply;
    }
    return undefined;
  }

  #replay(reply: StoredReply, all: readonly ReplySeal[]): Answered {
    const names = all.find(({ id }) => id === reply.id);
    if (reply.requestDigest !== names?.requestDigest) throw keyReused();
    if (reply.body === undefined || this.#services.clock.now() >= reply.shownUntil) {
      throw new GatewayError("reply_not_shown_again", {
        message:
          "This request was done. Its answer held a secret, which is not shown any more: rotate " +
          "the key for another, under a new Idempotency-Key.",
      });
    }
    const text = openReply(reply.body, names);
    return { status: reply.status, body: JSON.parse(text), isReplayed: true };
  }
}

/** The digests do not tell the key or the request: both may hold what must not be stored. */
function nameRequest(request: IdempotentRequest, pepper: PepperKey): ReplySeal {
  const { key, operation, call, parameters, query, body } = request;
  const { userId, kind, role, accountId } = call.principal;
  const digest = (value: unknown): string =>
    Buffer.from(pepper.digest(JSON.stringify(value))).toString("hex");
  return {
    key,
    // A principal that may see less than before is another one: it must not see what was kept.
    id: digest(["idempotency key", userId ?? kind, role, accountId ?? null, key]),
    requestDigest: digest(["request", operation.id, parameters, query ?? {}, body ?? {}]),
    digest: pepper.digest,
  };
}

/** Another process did the same request after this one looked for it. */
class DoneElsewhere extends Error {
  readonly reply: StoredReply;

  constructor(reply: StoredReply) {
    super("the request was done by another process");
    this.reply = reply;
  }
}

function keyReused(): GatewayError {
  return new GatewayError("idempotency_key_reused", {
    message: "This Idempotency-Key was used for another request. Use a new one for each change.",
    param: "Idempotency-Key",
  });
}
