import type { z } from "zod";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import type { Machine } from "./machine-stack.ts";

export type AdminRequest = readonly [method: string, path: string, body?: object];

/** One request of the control plane, as the operator of a gateway. */
export async function sendAdmin(
  { dataDir, process }: Machine,
  ...[method, path, body]: AdminRequest
): Promise<Response> {
  const local = readLocalAccess(dataDir);
  return fetch(`${process.adminUrl}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${local?.token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** What it answers. Rejects unless it succeeds. */
export async function askAdmin(machine: Machine, ...request: AdminRequest): Promise<unknown> {
  const response = await sendAdmin(machine, ...request);
  const answer: unknown = await response.json();
  if (response.ok) return answer;
  throw new Error(`${request[0]} ${request[1]}: ${JSON.stringify(answer)}`);
}

export async function askAt<Answer>(
  machine: Machine,
  schema: z.ZodType<Answer>,
  request: AdminRequest,
): Promise<Answer> {
  return schema.parse(await askAdmin(machine, ...request));
}
