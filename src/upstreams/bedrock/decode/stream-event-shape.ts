import { isObject, type JsonObject } from "../../shared/json-fields.ts";

/** The events of a ConverseStream that an answer is read from. */
export type KnownEvent =
  "contentBlockDelta" | "contentBlockStart" | "contentBlockStop" | "messageStop" | "metadata";

/**
 * Whether the fields of an event that are read have the shape in the service's model. Unknown
 * fields and kinds of content do no harm.
 */
export function hasProperShape(type: KnownEvent, event: JsonObject): boolean {
  switch (type) {
    case "contentBlockDelta":
      return isNoneOr(event["delta"], isDelta);
    case "contentBlockStart":
      return isNoneOr(event["start"], ({ toolUse }) => isNoneOr(toolUse, () => true));
    case "messageStop":
      return typeof event["stopReason"] === "string";
    case "contentBlockStop":
    case "metadata":
      return true;
  }
}

function isDelta({ text, toolUse, reasoningContent }: JsonObject): boolean {
  return (
    isTextOrNone(text) &&
    isNoneOr(toolUse, ({ input }) => isTextOrNone(input)) &&
    isNoneOr(reasoningContent, ({ text: thought, signature, redactedContent }) =>
      [thought, signature, redactedContent].every(isTextOrNone),
    )
  );
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
}

function isNoneOr(value: unknown, isProper: (object: JsonObject) => boolean): boolean {
  return value === undefined || value === null || (isObject(value) && isProper(value));
}
