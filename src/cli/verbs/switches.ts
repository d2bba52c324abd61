import type { ReplyRecord } from "../output/reply-fields.ts";
import { receiptNotes } from "../resources/replicas.ts";
import type { VerbSpec } from "./verb.ts";

type SwitchText = readonly [summary: string, effect: string];

export interface SwitchTexts {
  readonly disable: SwitchText;
  readonly enable: SwitchText;
}

/** The two verbs that set the field `disabled`. */
export function switches(operation: string, texts: SwitchTexts): VerbSpec[] {
  return (["disable", "enable"] as const).map((name) => {
    const [summary, effect] = texts[name];
    const fixed = { disabled: name === "disable" };
    const done = `is ${name}d. ${effect}`;
    const notes = (_: unknown, answer: ReplyRecord) => receiptNotes(answer);
    return { name, operation, summary, fixed, only: [], done, notes };
  });
}
