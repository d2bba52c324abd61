import { invalidField, fromStorageError } from "./operation/refusals.ts";
import type { AdminCall, Route } from "../edge/dispatch/route.ts";
import type { Reply } from "../edge/replies/error-reply.ts";
import { parseStrictJson } from "../edge/body/strict-json.ts";
import { streamDownload } from "./operation/download.ts";
import { openApiDocument } from "./openapi/openapi.ts";
import type { Operation } from "./operation/operation.ts";
import { referencePage, type ReferencePage } from "./openapi/reference-page.ts";
import {
  createRunOperation,
  isDownload,
  type OperationResult,
  type RunOperation,
} from "./operation/run-operation.ts";
import type { RunServices } from "./services.ts";
import { signInDescriptions } from "./sign-in/descriptions.ts";

/** The routes of all operations, and of the two documents that describe them. */
export function adminApiRoutes(
  services: RunServices,
  operations: readonly Operation[],
): readonly Route[] {
  const run = createRunOperation(services);
  return [
    ...operations.map((operation) => operationRoute(operation, run)),
    ...documentRoutes(operations),
  ];
}

function operationRoute(operation: Operation, run: RunOperation): Route {
  const { method, path, roles, scope } = operation;
  return {
    method,
    path,
    access: "principal",
    roles,
    scope,
    async handle(call) {
      const { id, principal, signal, address, parameters } = call;
      const result = await run(operation, {
        call: { id, principal, signal, address },
        parameters,
        query: readQuery(call.query),
        body: method === "GET" ? undefined : await readJson(call),
        idempotencyKey: call.request.headers.get("idempotency-key"),
      });
      return toReply(operation, result);
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

async function toReply(operation: Operation, result: OperationResult): Promise<Reply> {
  const { status, body, isReplayed } = result;
  if (isDownload(body)) {
    return {
      status,
      headers: {
        "content-type": body.contentType,
        "content-disposition": `attachment; filename="${body.fileName}"`,
      },
      body: await streamDownload(body).catch(throwFromStorage),
    };
  }
  const location = status === 201 ? locationOf(operation, body) : undefined;
  return {
    status,
    headers: {
      "content-type": "application/json",
      ...(location === undefined ? {} : { location }),
      ...(isReplayed ? { "idempotent-replayed": "true" } : {}),
    },
    body: JSON.stringify(body),
  };
}

function throwFromStorage(error: unknown): never {
  throw fromStorageError(error);
}

/** The id of a new entity, in the answer or in the entity that the answer shows with a secret. */
function locationOf(operation: Operation, body: unknown): string | undefined {
  const [collection] = operation.path.split("/{");
  const candidates = [body, field(body, "key"), field(body, "token")];
  const id = candidates.map((value) => field(value, "id")).find((value) => value !== undefined);
  return typeof id === "string" ? `${collection}/${id}` : undefined;
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

/** Generated on the first request, because it takes a fifth as long as a start. */
function documentRoutes(operations: readonly Operation[]): readonly Route[] {
  const described = [...signInDescriptions, ...operations];
  let document: string | undefined;
  let page: ReferencePage | undefined;
  return [
    {
      method: "GET",
      path: "/admin/v1/openapi.json",
      access: "anonymous",
      handle: () => ({
        status: 200,
        headers: { "content-type": "application/json" },
        body: (document ??= JSON.stringify(openApiDocument(described))),
      }),
    },
    {
      method: "GET",
      path: "/admin/v1/docs",
      access: "anonymous",
      handle: () => {
        page ??= referencePage(described);
        return {
          status: 200,
          headers: {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": page.contentSecurityPolicy,
          },
          body: page.html,
        };
      },
    },
  ];
}
