import type { RequestContext } from "../dispatch/request-context.ts";
import type { Reply } from "./error-reply.ts";

/** Adds the headers that every answer has. */
export function toResponse(reply: Reply, context: RequestContext, isClosing: boolean): Response {
  const { id, request, edge, durationMs } = context;
  const headers: Record<string, string> = { ...reply.headers, "x-request-id": id };
  const idHeader = context.surface?.dialect.idHeader ?? context.idHeader;
  if (idHeader !== undefined) headers[idHeader] = id;
  if (context.audited !== undefined) headers["x-sluice-would-refuse"] = context.audited.type;
  headers["openai-processing-ms"] = String(Math.round(durationMs));
  const origin = request.headers.get("origin");
  if (origin !== null) Object.assign(headers, edge.cors.headersFor(origin));
  if (isClosing) headers["connection"] = "close";
  else {
    headers["connection"] = "keep-alive";
    headers["keep-alive"] = context.connections.keepAliveHint;
  }
  return new Response(reply.body, { status: reply.status, headers });
}

/** Whether the connection is closed after the reply. */
export function closes({ headers }: Reply, { request, shared }: RequestContext): boolean {
  if (shared.options.shutdown.closesConnections || headers["connection"] === "close") return true;
  return request.headers.get("connection")?.toLowerCase().includes("close") === true;
}

/** Closes the connection of a long body refused unread. The runtime discards a short one. */
export function closingUnread(reply: Reply, { request, edge, body }: RequestContext): Reply {
  const length = request.headers.get("content-length");
  const isShort = length !== null && Number(length) <= edge.bodyLimits.bodyLimitBytes;
  if (body !== undefined || isShort || request.body === null) return reply;
  return { ...reply, headers: { ...reply.headers, connection: "close" } };
}
