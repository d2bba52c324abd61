import type { CacheMark } from "../../domain/chat/conversation.ts";
import { isObject, type JsonObject, objectOf } from "../../domain/json-fields.ts";
import { fieldsBeyond } from "../fields.ts";

const markFields = {
  control: "cache_control",
  breakpoint: "prompt_cache_breakpoint",
} as const satisfies Record<CacheMark["form"], string>;

export function markField(mark: CacheMark | undefined): string | undefined {
  return mark && markFields[mark.form];
}

/** The mark after a message, part or tool: Anthropic's field, or OpenAI's. */
export function markOf(holder: JsonObject): CacheMark | undefined {
  const control = holder["cache_control"];
  if (isObject(control) && control["type"] === "ephemeral") {
    const { ttl } = control;
    if (ttl === undefined || ttl === "1h" || ttl === "5m") {
      return { ttl, form: "control", extra: fieldsBeyond(control, controlFields) };
    }
  }
  const breakpoint = objectOf(holder["prompt_cache_breakpoint"]);
  return breakpoint && { form: "breakpoint", extra: fieldsBeyond(breakpoint, breakpointFields) };
}

const controlFields: ReadonlySet<string> = new Set(["type", "ttl"]);
const breakpointFields: ReadonlySet<string> = new Set(["mode"]);

/** As `cache_control` or `prompt_cache_breakpoint`. */
export function writeMark({ form, ttl, extra }: CacheMark): JsonObject {
  return form === "control"
    ? { type: "ephemeral", ...(ttl !== undefined && { ttl }), ...extra }
    : { mode: "explicit", ...extra };
}
