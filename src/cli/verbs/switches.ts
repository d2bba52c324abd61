import type { VerbSpec } from "./verb.ts";

/** Without an effect, the answer tells which gateways have applied the change. */
type SwitchText = readonly [summary: string, effect?: string];

export interface SwitchTexts {
  readonly disable: SwitchText;
  readonly enable: SwitchText;
}

/** The two verbs that set the field `disabled`. */
export function switches(operation: string, texts: SwitchTexts): VerbSpec[] {
  return (["disable", "enable"] as const).map((name) => {
    const [summary, effect] = texts[name];
    const fixed = { disabled: name === "disable" };
    const done = [`is ${name}d.`, ...(effect === undefined ? [] : [effect])].join(" ");
    const hasReceipt = effect === undefined;
    return { name, operation, summary, fixed, only: [], done, hasReceipt };
  });
}
