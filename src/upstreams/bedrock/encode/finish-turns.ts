import type { Turn } from "./converse-body.ts";
import { invalidRequest, unsupported } from "../failures/refusal.ts";

/** Checks and completes what depends on all turns. */
export function finishTurns(
  turns: readonly Turn[],
  { prefill }: { readonly prefill: boolean },
): void {
  const [first] = turns;
  if (first === undefined) {
    throw invalidRequest("messages", "At least one user message must have content.");
  }
  if (first.role === "assistant") {
    throw unsupported(
      "messages",
      "Conversations with this model must begin with a user message, not an assistant message. " +
        "Put a user message with content first.",
    );
  }
  const last = turns.at(-1);
  if (last?.role === "assistant") finishPrefill(last, prefill);
  for (const turn of turns) finishDocuments(turn);
}

/** The last turn is the assistant's: the model continues its text. */
function finishPrefill(turn: Turn, isAllowed: boolean): void {
  if (!isAllowed) {
    throw unsupported(
      "messages",
      "This model does not continue assistant messages. The last message must come from " +
        "the user or a tool.",
    );
  }
  const index = turn.content.findLastIndex((block) => "text" in block);
  const block = turn.content[index];
  if (block === undefined || !("text" in block)) return;
  // White space at its end is refused.
  turn.content[index] = { text: block.text.trimEnd() };
}

function finishDocuments({ content }: Turn): void {
  const names = content.flatMap((block) => ("document" in block ? [block.document.name] : []));
  if (names.length === 0 || content.some((block) => "text" in block)) return;
  // Documents alone are refused.
  content.push({ text: `Attached: ${names.join(", ")}` });
}
