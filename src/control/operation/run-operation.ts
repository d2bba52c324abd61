import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { fromStorageError, invalidField } from "./refusals.ts";
import type { Operation, OperationInput, ReplyKeeper } from "./operation.ts";
import type { RunServices } from "../services.ts";
import { z } from "zod";
import { isObject } from "../../domain/json-object.ts";
import {
  namesOfReply,
  nameRequest,
  type AllRequestNames,
} from "../../idempotency/request-names.ts";
import { openReply, sealReply } from "../../idempotency/seal.ts";
import type { StoredReply } from "../../store/control-store.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";

export interface OperationRequest extends OperationInput {
  /** The header `Idempotency-Key`; undefined or null when there is none. */
  readonly idempotencyKey?: string | null | undefined;
}

/** Throws `GatewayError` for errors that the caller can act on. */
export type RunOperation = (
  operation: Operation,
  request: OperationRequest,
) => Promise<OperationAnswer>;

/**
 * Runs operations once for each idempotency key, with or without HTTP. The listener has checked the
 * permission; without one, the caller may do everything.
 */
export function createRunOperation(services: RunServices): RunOperation {
  return async (operation, request) => {
    const { idempotencyKey: key, ...input } = request;
    try {
      if (operation.method === "GET" || key === undefined || key === null) {
        const body = await operation.run(input);
        return { status: operation.status, body, isReplayed: false };
      }
      checkIdempotencyKey(key);
      const names = namesOf({ key, operation, ...input }, services);
      const answered = await runOnce({ operation, names, services }, input);
      return await withReceipt(operation, answered, services);
    } catch (error) {
      throw fromStorageError(error, request.body);
    }
  };
}

function checkIdempotencyKey(key: string): void {
  if (/^[\x20-\x7e]{1,200}$/.test(key)) return;
  throw invalidField("Idempotency-Key", "use 1 to 200 printable ASCII characters");
}

const purpose = "replies that may be asked for again";

/** How long a request can be replayed under its key. */
const knownMs = 24 * 3_600_000;
/** How long an answer with a secret may be shown again, in case the first one was lost. */
const secretShownMs = 10 * 60_000;

export interface OperationAnswer {
  readonly status: number;
  /** A JSON value, or the `Response` of a long text. */
  readonly body: unknown;
  readonly isReplayed: boolean;
}

interface NamedRequest {
  readonly operation: Operation;
  readonly names: AllRequestNames;
  readonly services: RunServices;
}

/**
 * Runs a change once for all requests of one principal with one idempotency key, and stores its
 * answer in the transaction of the change. Of requests that run at once, all but one find that
 * answer in their transaction. A failed request changed nothing and may be retried.
 */
async function runOnce(named: NamedRequest, input: OperationInput): Promise<OperationAnswer> {
  const { operation, services } = named;
  const known = await services.store.read((view) => findReply(view, named));
  if (known !== undefined) return replay(known, named);
  let isKept = false;
  const replies: ReplyKeeper = {
    expectNone: async (transaction) => {
      const stored = await findReply(transaction, named);
      if (stored !== undefined) throw new AnsweredBefore(stored);
    },
    keep: async (transaction, answer) => {
      await transaction.replies.put(toReply(answer, named));
      isKept = true;
    },
  };
  try {
    const body = await operation.run({ ...input, call: { ...input.call, replies } });
    if (!isKept) await services.store.change((transaction) => replies.keep(transaction, body));
    return { status: operation.status, body, isReplayed: false };
  } catch (error) {
    if (error instanceof AnsweredBefore) return replay(error.reply, named);
    throw error;
  }
}

class AnsweredBefore extends Error {
  readonly reply: StoredReply;

  constructor(reply: StoredReply) {
    super("the request has been answered");
    this.reply = reply;
  }
}

/**
 * The kept answer has no receipt, because other processes apply the change after its transaction.
 * Each repeat counts them anew.
 */
async function withReceipt(
  { answer }: Operation,
  answered: OperationAnswer,
  services: RunServices,
): Promise<OperationAnswer> {
  const { body } = answered;
  const isTold = answer instanceof z.ZodObject && "applied" in answer.shape;
  if (!isTold || !isObject(body) || "applied" in body) return answered;
  const applied = await services.onKeysChanged().catch(() => undefined);
  return applied === undefined ? answered : { ...answered, body: { ...body, applied } };
}

function toReply(answer: unknown, { operation, names, services }: NamedRequest): StoredReply {
  const now = services.clock.now();
  return {
    id: names.id,
    requestDigest: names.requestDigest,
    status: operation.status,
    body: sealReply(
      JSON.stringify(operation.answer.parse(answer)),
      { names, purpose },
      services.random,
    ),
    createdAt: now,
    shownUntil: now + (operation.hasSecret === true ? secretShownMs : knownMs),
  };
}

/** Before a rotation of the peppers, the same request had other ids. */
async function findReply(
  view: ControlView,
  { names, services: { clock } }: NamedRequest,
): Promise<StoredReply | undefined> {
  for (const { id } of [names, ...names.older]) {
    const reply = await view.replies.get(id);
    if (reply !== undefined && clock.now() - reply.createdAt < knownMs) return reply;
  }
  return undefined;
}

function replay(reply: StoredReply, { names: all, services }: NamedRequest): OperationAnswer {
  const names = namesOfReply(reply, all);
  if (names === undefined) {
    throw new GatewayError("idempotency_key_reused", {
      message: "This Idempotency-Key was used for another request. Use a new one for each change.",
      param: "Idempotency-Key",
    });
  }
  if (reply.body === undefined || services.clock.now() >= reply.shownUntil) {
    throw new GatewayError("reply_not_shown_again", {
      message:
        "This request succeeded, but the secret in its response can no longer be shown. " +
        "Make another one, with a new Idempotency-Key.",
    });
  }
  const text = openReply(reply.body, { names, purpose });
  return { status: reply.status, body: JSON.parse(text), isReplayed: true };
}

/** Digests, because the key and the request may contain data that must not be stored. */
function namesOf(
  request: OperationInput & { readonly key: string; readonly operation: Operation },
  { peppers }: RunServices,
): AllRequestNames {
  const { key, operation, call, parameters, query, body } = request;
  const { userId, kind, role, accountId } = call.principal;
  // A principal whose scope changed counts as a different one, because it must not see the stored
  // answer.
  const identity = ["idempotency key", userId ?? kind, role, accountId ?? null, key];
  const content = ["request", operation.id, parameters, query ?? {}, body ?? {}];
  return nameRequest({ key, identity, content }, peppers);
}
