import type { VerbSpec } from "./verb.ts";

type SwitchText = readonly [summary: string, effect: string];

export interface SwitchTexts {
  readonly disable: SwitchText;
  readonly enable: SwitchText;
}

/** The two verbs that set the field `disabled`; `example` is a thing that they may name. */
export function switches(operation: string, example: string, texts: SwitchTexts): VerbSpec[] {
  const resource = `${operation.replace(/^update/, "").toLowerCase()}s`;
  return (["disable", "enable"] as const).map((name) => {
    const [summary, effect] = texts[name];
    return {
      name,
      operation,
      summary,
      fixed: { disabled: name === "disable" },
      only: [],
      done: `${name}d. ${effect}`,
      examples: [`${resource} ${name} ${example}`],
    };
  });
}
