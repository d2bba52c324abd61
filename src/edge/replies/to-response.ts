import type { MemoryHold } from "../../domain/waiting/memory-gate.ts";
import type { Connections } from "../listen.ts";
import type { CorsPolicy } from "../cors.ts";
import type { BodyLimits } from "../body/read-body.ts";
import type { Reply } from "./error-reply.ts";

interface AnsweredRequest {
  readonly id: string;
  /** A header for it beside `x-request-id`. */
  readonly idHeader: string | undefined;
  readonly request: Request;
  readonly connections: Pick<Connections, "keepAliveHint">;
  readonly edge: { readonly cors: CorsPolicy };
  readonly durationMs: number;
  readonly isClosing: boolean;
}

/** Adds the headers that every answer has. */
export function toResponse(reply: Reply, answered: AnsweredRequest): Response {
  const { id, request, edge, durationMs } = answered;
  const headers: Record<string, string> = { ...reply.headers, "x-request-id": id };
  if (answered.idHeader !== undefined) headers[answered.idHeader] = id;
  headers["openai-processing-ms"] = String(Math.round(durationMs));
  const origin = request.headers.get("origin");
  if (origin !== null) Object.assign(headers, edge.cors.headersFor(origin));
  if (answered.isClosing) headers["connection"] = "close";
  else {
    headers["connection"] = "keep-alive";
    headers["keep-alive"] = answered.connections.keepAliveHint;
  }
  return new Response(reply.body, { status: reply.status, headers });
}

/** Whether the connection is closed after the reply. */
export function closes(
  { headers }: Reply,
  { request, isEnding }: Pick<AnsweredRequest, "request"> & { readonly isEnding: boolean },
): boolean {
  if (isEnding || headers["connection"] === "close") return true;
  return request.headers.get("connection")?.toLowerCase().includes("close") === true;
}

interface UnreadBody {
  readonly request: Request;
  readonly edge: { readonly bodyLimits: BodyLimits };
  /** Memory of the body; undefined when the body was not read. */
  readonly body: MemoryHold | undefined;
}

/** Closes the connection of a long body refused unread. The runtime discards a short one. */
export function closingUnread(reply: Reply, { request, edge, body }: UnreadBody): Reply {
  const length = request.headers.get("content-length");
  const isShort = length !== null && Number(length) <= edge.bodyLimits.bodyLimitBytes;
  if (body !== undefined || isShort || request.body === null) return reply;
  return { ...reply, headers: { ...reply.headers, connection: "close" } };
}
