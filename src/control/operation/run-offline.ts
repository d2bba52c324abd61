import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Operation, OperationCall } from "./operation.ts";
import { createRunOperation, type RunOperation } from "./run-operation.ts";
import type { RunServices } from "../services.ts";

export interface OfflineRequest {
  readonly method: string;
  /** Such as `/admin/v1/keys/key_1`, percent-encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
  readonly idempotencyKey?: string | undefined;
  readonly call: OperationCall;
}

export interface OfflineAnswer {
  readonly status: number;
  /** The JSON body that HTTP would send, errors included, or a `Download`. */
  readonly body: unknown;
}

export type RunOffline = (request: OfflineRequest) => Promise<OfflineAnswer>;

/** Runs requests of the control plane without a listener, for example for the command line. */
export function createRunOffline(
  services: RunServices,
  operations: readonly Operation[],
): RunOffline {
  const run = createRunOperation(services);
  return async (request) => {
    try {
      const { status, body } = await runMatching(run, operations, request);
      return { status, body };
    } catch (error) {
      if (error instanceof GatewayError) return { status: error.status, body: error.toBody() };
      throw error;
    }
  };
}

function runMatching(
  run: RunOperation,
  operations: readonly Operation[],
  { method, path, query, body, idempotencyKey, call }: OfflineRequest,
): ReturnType<RunOperation> {
  for (const operation of operations) {
    const parameters = operation.method === method ? matchPath(operation.path, path) : undefined;
    if (parameters === undefined) continue;
    return run(operation, { call, parameters, query, body, idempotencyKey });
  }
  throw new GatewayError("unknown_url", {
    message: `The admin API has no ${method} ${path.slice(0, 200)}.`,
  });
}

/** Exact paths come before those with names in the list of operations, as in the route table. */
function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = decode(given[index] ?? "");
    if (part.startsWith("{") && text !== "" && text !== undefined) {
      parameters[part.slice(1, -1)] = text;
    } else if (part !== text) return undefined;
  }
  return parameters;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
