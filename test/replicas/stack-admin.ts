import type { z } from "zod";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import type { Replica } from "./replica-stack.ts";

/** One request of the control plane, as the operator of a gateway. Rejects unless it succeeds. */
export async function askAt<Answer>(
  { dataDir, process }: Replica,
  schema: z.ZodType<Answer>,
  [method, path, body]: readonly [method: string, path: string, body?: object],
): Promise<Answer> {
  const local = await readLocalAccess(dataDir);
  const authorization = `Bearer ${local?.token}`;
  const headers = { authorization, "content-type": "application/json" };
  const response = await fetch(`${process.adminUrl}/admin/v1${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  return schema.parse(answer);
}
