import type { GuardrailOutcome } from "../../../domain/chat/answer.ts";
import { isObject, objectOf } from "../../../domain/json-fields.ts";

/**
 * What a guardrail did to an answer; undefined if it did nothing. Only the `trace` distinguishes
 * blocking from masking, and the provider sends one only if the target asks for it. The rest of the
 * trace is not read, because it quotes the answer.
 */
export function guardrailOutcome(
  stopReason: string | undefined,
  trace: unknown,
): GuardrailOutcome | undefined {
  const actions = actionsIn(objectOf(trace)?.["guardrail"]);
  const action = actions.has("BLOCKED")
    ? "blocked"
    : actions.has("ANONYMIZED")
      ? "masked"
      : undefined;
  return action !== undefined || stopReason === "guardrail_intervened" ? { action } : undefined;
}

/** The `action` of every policy of every assessment. */
function actionsIn(value: unknown): ReadonlySet<unknown> {
  const actions = new Set<unknown>();
  const visit = (part: unknown): void => {
    if (Array.isArray(part)) part.forEach(visit);
    if (!isObject(part)) return;
    actions.add(part["action"]);
    Object.values(part).forEach(visit);
  };
  visit(value);
  return actions;
}
