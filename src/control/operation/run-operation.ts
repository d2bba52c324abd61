import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { runOnce, type Answered } from "./run-once.ts";
import { invalidField, fromStorageError } from "./refusals.ts";
import type { Operation, OperationInput, ReplyKeeper } from "./operation.ts";
import type { RunServices } from "../services.ts";

export interface OperationRequest extends OperationInput {
  /** The header `Idempotency-Key`; undefined or null when there is none. */
  readonly idempotencyKey?: string | null | undefined;
}

/** Throws `GatewayError` for errors that the caller can act on. */
export type RunOperation = (operation: Operation, request: OperationRequest) => Promise<Answered>;

/**
 * Runs operations, with or without HTTP: checks the permission, then runs once for each idempotency
 * key.
 */
export function createRunOperation(services: RunServices): RunOperation {
  return async (operation, request) => {
    checkPermission(operation, request);
    const { idempotencyKey: key, ...input } = request;
    try {
      if (operation.method === "GET" || key === undefined || key === null) {
        const body = await operation.run(input);
        return { status: operation.status, body, isReplayed: false };
      }
      checkIdempotencyKey(key);
      const work = (replies: ReplyKeeper): Promise<unknown> =>
        operation.run({ ...input, call: { ...input.call, replies } });
      return await runOnce({ key, operation, ...input }, work, services);
    } catch (error) {
      throw fromStorageError(error, request.body);
    }
  };
}

/** The listener checks the same lists, but operations also run without a listener. */
function checkPermission({ roles, scope }: Operation, { call }: OperationRequest): void {
  const { role, scopes } = call.principal;
  if (!roles.includes(role)) {
    throw new GatewayError("not_permitted", {
      message: `Your role, ${role}, does not allow this. Required: ${roles.join(", ")}.`,
    });
  }
  if (!scopes.includes(scope)) {
    throw new GatewayError("not_permitted", {
      message: `Your token does not have the scope '${scope}'.`,
    });
  }
}

function checkIdempotencyKey(key: string): void {
  if (/^[\x20-\x7e]{1,200}$/.test(key)) return;
  throw invalidField("Idempotency-Key", "use 1 to 200 printable ASCII characters");
}
