import type { z } from "zod";
import { parseStrictJson } from "../../edge/body/strict-json.ts";
import { fieldError } from "../operation/field-error.ts";

/** Reads a JSON body by its schema. Throws 400. */
export async function readFields<Schema extends z.ZodType>(
  call: { readBody(): Promise<Uint8Array> },
  schema: Schema,
): Promise<z.output<Schema>> {
  const value = parseStrictJson(await call.readBody());
  const result = schema.safeParse(value);
  if (!result.success) throw fieldError(result.error, value);
  return result.data;
}
