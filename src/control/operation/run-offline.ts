import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { RouteTable } from "../../edge/dispatch/route-table.ts";
import { operationRoute } from "../admin-routes.ts";
import type { RunServices } from "../services.ts";
import type { Operation } from "./operation.ts";
import {
  createRunOperation,
  type OperationAnswer,
  type OperationRequest,
} from "./run-operation.ts";

export interface OfflineRequest extends Pick<OperationRequest, "call" | "idempotencyKey"> {
  readonly method: string;
  /** Such as `/admin/v1/keys/key_1`, percent-encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** As over HTTP, errors included. */
export type OfflineAnswer = Pick<OperationAnswer, "status" | "body">;

/** Runs requests of the control plane without a listener, for example for the command line. */
export function createRunOffline(services: RunServices, operations: readonly Operation[]) {
  const run = createRunOperation(services);
  const byRoute = new Map(operations.map((each) => [operationRoute(each, run), each] as const));
  const table = new RouteTable([...byRoute.keys()], "admin");
  return async ({
    method,
    path,
    query,
    body: sent,
    ...request
  }: OfflineRequest): Promise<OfflineAnswer> => {
    try {
      const { route, parameters } = table.match(method, path);
      const operation = byRoute.get(route);
      if (operation === undefined) throw new Error("the table has a route of its own");
      const { status, body } = await run(operation, { ...request, parameters, query, body: sent });
      return { status, body };
    } catch (error) {
      if (error instanceof GatewayError) return { status: error.status, body: error.toBody() };
      throw error;
    }
  };
}
