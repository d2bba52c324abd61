import { invalidField } from "./operation/refusals.ts";
import type { AdminCall, Route } from "../edge/dispatch/route.ts";
import { jsonReply, type Reply } from "../edge/replies/error-reply.ts";
import { createReadiness, health } from "../edge/shutdown.ts";
import { parseStrictJson } from "../edge/body/strict-json.ts";
import { openApiDocument } from "./openapi/openapi.ts";
import type { Operation, OperationDescription } from "./operation/operation.ts";
import { readsInTurn } from "./operation/read-turns.ts";
import { referencePage } from "./openapi/reference-page.ts";
import {
  createRunOperation,
  type OperationAnswer,
  type RunOperation,
} from "./operation/run-operation.ts";
import type { RunServices } from "./services.ts";
import { signInDescriptions } from "./sign-in/descriptions.ts";

export interface AdminRouteOptions {
  readonly renderMetrics: () => string | Promise<string>;
  readonly whyNotReady: () => string | undefined;
  /** What a gateway that can serve lacks; undefined: nothing. */
  readonly howDegraded: () => string | undefined;
  /** The console, and everything below `/admin/v1`; `docs/admin-api.md` lists that. */
  readonly control: readonly Route[];
}

const page = { method: "GET", access: "public" } as const;
const probe = { ...page, hosts: "any" } as const;

export function adminRoutes(options: AdminRouteOptions): readonly Route[] {
  const { renderMetrics, whyNotReady, howDegraded, control } = options;
  return [
    // They tell of all accounts.
    {
      ...page,
      hosts: "inside",
      path: "/metrics",
      handle: async () => metricsReply(await renderMetrics()),
    },
    { ...probe, path: "/healthz", handle: health },
    { ...probe, path: "/readyz", handle: createReadiness(whyNotReady, howDegraded) },
    ...control,
  ];
}

/** In Prometheus' text format. */
function metricsReply(body: string): Reply {
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  return { status: 200, headers, body };
}

/** A request whose answer is no value, such as a stream. */
export interface StreamRoute {
  readonly description: OperationDescription;
  readonly isPassive?: true;
  readonly handle: (call: AdminCall, query: Readonly<Record<string, string>>) => Promise<Reply>;
}

/** The routes of all operations and streams, and of the two documents that describe them. */
export function adminApiRoutes(
  services: RunServices,
  operations: readonly Operation[],
  streams: readonly StreamRoute[] = [],
): readonly Route[] {
  const run = readsInTurn(createRunOperation(services));
  return [
    ...operations.map((operation) => operationRoute(operation, run)),
    ...streams.map(({ description, isPassive, handle }): Route => {
      const { method, path, roles, scope } = description;
      const shape = { method, path, roles, scope, access: "principal" } as const;
      const read = (call: AdminCall) => handle(call, readQuery(call.query));
      return { ...shape, ...(isPassive && { isPassive }), handle: read };
    }),
    ...documentRoutes([...operations, ...streams.map(({ description }) => description)]),
  ];
}

export function operationRoute(operation: Operation, run: RunOperation): Route {
  const { method, path, roles, scope } = operation;
  return {
    method,
    path,
    access: "principal",
    roles,
    scope,
    async handle(call) {
      const { id, principal, signal, address, parameters } = call;
      const answer = await run(operation, {
        call: { id, principal, signal, address },
        parameters,
        query: readQuery(call.query),
        body: method === "GET" ? undefined : await readJson(call),
        idempotencyKey: call.request.headers.get("idempotency-key"),
      });
      return toReply(answer);
    },
  };
}

/** Throws 400 for a repeated name, which is ambiguous. */
function readQuery(query: URLSearchParams): Record<string, string> {
  const names = [...query.keys()];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalidField(twice.slice(0, 100), "name it once");
  return Object.fromEntries(query);
}

async function readJson(call: AdminCall): Promise<unknown> {
  const bytes = await call.readBody();
  return bytes.byteLength === 0 ? undefined : parseStrictJson(bytes);
}

function toReply({ status, body, isReplayed }: OperationAnswer): Reply {
  if (body instanceof Response) {
    return { status, headers: Object.fromEntries(body.headers), body: body.body };
  }
  const replayed = isReplayed ? { "idempotent-replayed": "true" } : {};
  return { ...jsonReply(body, replayed), status };
}

/** Generated on the first request, because it takes a fifth as long as a start. */
function documentRoutes(operations: readonly OperationDescription[]): readonly Route[] {
  const described = [...signInDescriptions, ...operations];
  let document: Reply | undefined;
  let page: Reply | undefined;
  return [
    {
      method: "GET",
      path: "/admin/v1/openapi.json",
      access: "anonymous",
      handle: () => (document ??= jsonReply(openApiDocument(described))),
    },
    {
      method: "GET",
      path: "/admin/v1/docs",
      access: "anonymous",
      handle: () => (page ??= referencePage(described)),
    },
  ];
}
