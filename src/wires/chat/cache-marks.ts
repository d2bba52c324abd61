import type { CacheMark, Turn } from "../../domain/chat/conversation.ts";
import { isObject, type JsonObject } from "../../domain/json-fields.ts";
import { type FieldNames, fieldNames, fieldsBeyond } from "../fields.ts";

const markFields = {
  control: "cache_control",
  breakpoint: "prompt_cache_breakpoint",
} as const satisfies Record<CacheMark["form"], string>;

/** The cache mark and the unknown fields of a message, part or tool. */
type Beside = Pick<Turn, "cacheMark" | "extra">;

/** As `fieldsBeyond`, with the mark. Of two marks the first counts; the other one is a field. */
export function fieldsBeside(holder: JsonObject, known: FieldNames, own?: string): Beside {
  let cacheMark: CacheMark | undefined;
  let extra: Record<string, unknown> | undefined;
  for (const field in holder) {
    if (known[field] === true || field === own || field === "__proto__") continue;
    const value = holder[field];
    const mark = cacheMark === undefined ? readMark(field, value) : undefined;
    if (mark !== undefined) cacheMark = mark;
    else {
      extra ??= {};
      extra[field] = value;
    }
  }
  return { cacheMark, extra };
}

function readMark(field: string, value: unknown): CacheMark | undefined {
  if (!isObject(value)) return undefined;
  if (field === markFields.breakpoint) {
    return { form: "breakpoint", extra: fieldsBeyond(value, breakpointFields) };
  }
  // Without a type it has no effect.
  if (field !== markFields.control || value["type"] !== "ephemeral") return undefined;
  const { ttl } = value;
  if (ttl !== undefined && ttl !== "1h" && ttl !== "5m") return undefined;
  return { ttl, form: "control", extra: fieldsBeyond(value, controlFields) };
}

const controlFields = fieldNames("type ttl");
const breakpointFields = fieldNames("mode");

/** The mark's field, if it is among these. Undefined: all are sent. */
export function writeMark(
  mark: CacheMark | undefined,
  sent: ReadonlySet<string> | undefined,
): JsonObject | undefined {
  if (mark === undefined) return undefined;
  const { form, ttl, extra } = mark;
  const field = markFields[form];
  if (sent !== undefined && !sent.has(field)) return undefined;
  return {
    [field]:
      form === "control"
        ? { type: "ephemeral", ...(ttl !== undefined && { ttl }), ...extra }
        : { mode: "explicit", ...extra },
  };
}
