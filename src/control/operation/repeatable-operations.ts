import { z } from "zod";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isObject } from "../../domain/json-object.ts";
import { abortable } from "../../domain/waiting/wait.ts";
import {
  namesOfReply,
  nameRequest,
  type AllRequestNames,
} from "../../idempotency/request-names.ts";
import { openReply, sealReply } from "../../idempotency/seal.ts";
import type { ControlView, StoredReply } from "../../store/control-store.ts";
import type { Operation, OperationInput, ReplyKeeper } from "./operation.ts";
import type { RunServices } from "../services.ts";

const purpose = "replies that may be asked for again";

/** How long a request can be replayed under its key. */
const knownMs = 24 * 3_600_000;
/** How long an answer with a secret may be shown again, in case the first one was lost. */
const secretShownMs = 10 * 60_000;

export interface RepeatableRequest extends OperationInput {
  /** The idempotency key that the caller chose. */
  readonly key: string;
  readonly operation: Operation;
}

export interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly isReplayed: boolean;
}

type Work = (replies: ReplyKeeper) => Promise<unknown>;

/** A request that runs in this process. */
interface RunningRequest {
  readonly requestDigest: string;
  readonly ended: Promise<void>;
}

/**
 * Runs a change once for all requests of one principal with one idempotency key, and stores its
 * answer in the transaction of the change. A failed request changed nothing and may be retried.
 */
export class RepeatableOperations {
  readonly #services: RunServices;
  readonly #running = new Map<string, RunningRequest>();

  constructor(services: RunServices) {
    this.#services = services;
  }

  async run(request: RepeatableRequest, work: Work): Promise<Answered> {
    const names = namesOf(request, this.#services);
    const answered = await this.#inTurn(names, request, () => this.#answer(request, names, work));
    return this.#withReceipt(request.operation, answered);
  }

  /** Equal requests follow each other, so that the later ones find the answer of the first. */
  async #inTurn(
    { id, requestDigest }: AllRequestNames,
    { call: { signal } }: RepeatableRequest,
    answer: () => Promise<Answered>,
  ): Promise<Answered> {
    for (let other = this.#running.get(id); other !== undefined; other = this.#running.get(id)) {
      if (other.requestDigest !== requestDigest) throw keyReused();
      await abortable(other.ended, signal);
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(id, { requestDigest, ended });
    try {
      return await answer();
    } finally {
      this.#running.delete(id);
      resolve();
    }
  }

  async #answer(request: RepeatableRequest, names: AllRequestNames, work: Work): Promise<Answered> {
    const replay = (reply: StoredReply): Answered => ({
      ...this.#open(reply, names),
      isReplayed: true,
    });
    const known = await this.#services.store.read((view) => this.#find(view, names));
    if (known !== undefined) return replay(known);
    try {
      return await this.#change(request, names, work);
    } catch (error) {
      if (error instanceof AnsweredElsewhere) return replay(error.reply);
      throw error;
    }
  }

  /**
   * The kept answer has no receipt, because other processes apply the change after its transaction.
   * Each repeat counts them anew.
   */
  async #withReceipt({ answer }: Operation, answered: Answered): Promise<Answered> {
    const { body } = answered;
    const isTold = answer instanceof z.ZodObject && "applied" in answer.shape;
    if (!isTold || !isObject(body) || "applied" in body) return answered;
    const applied = await this.#services.onKeysChanged().catch(() => undefined);
    return applied === undefined ? answered : { ...answered, body: { ...body, applied } };
  }

  async #change(
    { operation }: RepeatableRequest,
    names: AllRequestNames,
    work: (replies: ReplyKeeper) => Promise<unknown>,
  ): Promise<Answered> {
    const { store } = this.#services;
    let isKept = false;
    const keeper: ReplyKeeper = {
      expectNone: async (transaction) => {
        const stored = await this.#find(transaction, names);
        if (stored !== undefined) throw new AnsweredElsewhere(stored);
      },
      keep: async (transaction, answer) => {
        await transaction.replies.put(this.#toReply(operation, names, answer));
        isKept = true;
      },
    };
    const body = await work(keeper);
    if (!isKept) await store.change((transaction) => keeper.keep(transaction, body));
    return { status: operation.status, body, isReplayed: false };
  }

  #isKnown(reply: StoredReply | undefined): reply is StoredReply {
    return reply !== undefined && this.#services.clock.now() - reply.createdAt < knownMs;
  }

  #toReply(operation: Operation, names: AllRequestNames, answer: unknown): StoredReply {
    const now = this.#services.clock.now();
    return {
      id: names.id,
      requestDigest: names.requestDigest,
      status: operation.status,
      body: sealReply([JSON.stringify(answer)], { names, purpose }, this.#services.random),
      createdAt: now,
      shownUntil: now + (operation.hasSecret === true ? secretShownMs : knownMs),
    };
  }

  /** Before a rotation of the peppers, the same request had other ids. */
  async #find(view: ControlView, names: AllRequestNames): Promise<StoredReply | undefined> {
    for (const { id } of [names, ...names.older]) {
      const reply = await view.replies.get(id);
      if (this.#isKnown(reply)) return reply;
    }
    return undefined;
  }

  #open(reply: StoredReply, all: AllRequestNames): Answered {
    const names = namesOfReply(reply, all);
    if (names === undefined) throw keyReused();
    if (reply.body === undefined || this.#services.clock.now() >= reply.shownUntil) {
      throw new GatewayError("reply_not_shown_again", {
        message:
          "This request succeeded, but the secret in its response can no longer be shown. " +
          "Rotate the key with a new Idempotency-Key.",
      });
    }
    const text = openReply(reply.body, { names, purpose }).toString("utf8");
    return { status: reply.status, body: JSON.parse(text), isReplayed: false };
  }
}

/** Another process has answered the request since it was looked for. */
class AnsweredElsewhere extends Error {
  readonly reply: StoredReply;

  constructor(reply: StoredReply) {
    super("another process has answered the request");
    this.reply = reply;
  }
}

/** Digests, because the key and the request may contain data that must not be stored. */
function namesOf(request: RepeatableRequest, { peppers }: RunServices): AllRequestNames {
  const { key, operation, call, parameters, query, body } = request;
  const { userId, kind, role, accountId } = call.principal;
  // A principal whose scope changed counts as a different one, because it must not see the stored
  // answer.
  const identity = ["idempotency key", userId ?? kind, role, accountId ?? null, key];
  const content = ["request", operation.id, parameters, query ?? {}, body ?? {}];
  return nameRequest({ key, identity, content }, peppers);
}

function keyReused(): GatewayError {
  return new GatewayError("idempotency_key_reused", {
    message: "This Idempotency-Key was used for another request. Use a new one for each change.",
    param: "Idempotency-Key",
  });
}
