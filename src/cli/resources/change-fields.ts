import type { OptionSpecs } from "../arguments.ts";

/** Of commands whose answer holds something new that may not be made twice. */
export const idempotencyOption = {
  "idempotency-key": {
    type: "string",
    value: "TEXT",
    about: "the same for a repeated command, so that it happens once",
  },
} as const satisfies OptionSpecs;

/** The fields that the command line names; the others keep their values, or get defaults. */
export function definedFields(
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
